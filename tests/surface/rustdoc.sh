#!/bin/sh
# rustdoc with what is unstable in it, such as JSON, by the stable toolchain. The variable is not for all of cargo,
# since build scripts look at it too: cargo would compile all that depends on one anew.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
