//! `install`: copies a file into a folder. Images that hold only the module and this tool have no `cp`.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `install`.
#[derive(Debug, Args)]
pub struct Install {
    /// The file to copy, such as the module
    file: PathBuf,
    /// The existing folder to copy it to
    folder: PathBuf,
}

impl Install {
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let name = self.file.file_name().ok_or_else(|| Failure::arguments("the first argument is not a file"))?;
        let target = self.folder.join(name);
        self.copy(&target).map_err(|error| {
            Failure::new(format!("cannot copy {} to {}: {error}", self.file.display(), target.display()))
        })?;
        output.plain(&format!("{}\n", target.display()))
    }

    /// Replaces the file at once: a server that still has the old one mapped keeps it.
    fn copy(&self, target: &PathBuf) -> io::Result<()> {
        let mut temporary = tempfile::NamedTempFile::new_in(&self.folder)?;
        io::copy(&mut File::open(&self.file)?, &mut temporary)?;
        // The server often runs as another user, who must be able to read and execute the module.
        fs::set_permissions(temporary.path(), Permissions::from_mode(0o755))?;
        temporary.as_file().sync_all()?;
        temporary.persist(target)?;
        Ok(())
    }
}
