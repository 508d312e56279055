//! redis-rs against the module on the server that `ROLLCALL_URL` names: `make test-clients` runs this.

#[cfg(test)]
#[macro_use]
mod ways;

#[cfg(test)]
mod bloom;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod generic;
#[cfg(test)]
mod windows;
