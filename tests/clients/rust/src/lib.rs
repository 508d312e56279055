//! Tests redis-rs with the module. `ROLLCALL_URL` names the server; `make test-clients` runs the tests.

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
