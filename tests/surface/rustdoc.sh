#!/bin/sh
# Runs the stable toolchain's rustdoc with unstable features, such as JSON. The variable is set only here. If it
# were set for cargo, build scripts would see it, and their crates would be compiled again.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
