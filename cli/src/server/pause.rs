//! Pauses the writes of a server's clients.

use std::time::{Duration, Instant};

use super::Server;
use crate::failure::Failure;

/// How long writes stay paused if the tool ends without resuming them, in milliseconds.
const PAUSE_MILLIS: u64 = 30_000;

/// Time after which the pause is renewed.
const RENEW: Duration = Duration::from_secs(5);

/// A pause of all clients' writes by CLIENT PAUSE; [`Pause::release`] ends it.
#[derive(Debug)]
pub struct Pause {
    renewed: Instant,
}

impl Pause {
    /// Pauses writes from now on, on all primaries.
    pub fn begin(server: &mut Server) -> Result<Self, Failure> {
        hold(server)?;
        Ok(Pause { renewed: Instant::now() })
    }

    /// Renews the pause when it is time to.
    pub fn keep(&mut self, server: &mut Server) -> Result<(), Failure> {
        if self.renewed.elapsed() > RENEW {
            hold(server)?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    /// Ends the pause.
    pub fn release(server: &mut Server) -> Result<(), Failure> {
        for node in 0..server.num_nodes() {
            server.call_node(node, redis::cmd("CLIENT").arg("UNPAUSE"))?;
        }
        Ok(())
    }
}

fn hold(server: &mut Server) -> Result<(), Failure> {
    for node in 0..server.num_nodes() {
        server.call_node(node, redis::cmd("CLIENT").arg("PAUSE").arg(PAUSE_MILLIS).arg("WRITE"))?;
    }
    Ok(())
}
