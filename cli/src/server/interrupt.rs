//! Ctrl-C, and SIGTERM: a long command ends between two steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// Whether the user asked to end. A second Ctrl-C ends at once.
#[derive(Debug, Clone)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 130, asked.clone())
                .and_then(|_| flag::register(signal, asked.clone()))
                .map_err(|error| Failure::of(format!("cannot listen for signals: {error}")))?;
        }
        Ok(Interrupt { asked })
    }

    /// A failure if the user asked to end.
    pub fn check(&self) -> Result<(), Failure> {
        if !self.asked.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Failure::of("interrupted").advise("what is done is kept: run the same again to go on"))
    }
}
