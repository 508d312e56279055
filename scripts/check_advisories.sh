#!/usr/bin/env bash
# Checks Cargo.lock against the RustSec advisories, where that can be done without a network.
#
# The advisories are a database that changes daily and is no package: it cannot be pinned or fetched from a package
# registry. So this check runs only where cargo-audit or cargo-deny is installed with a local copy of the database. It
# uses that copy as it is. Elsewhere it says that it did not run. `cargo audit`, with a network, fetches a fresh copy.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo_home=${CARGO_HOME:-$HOME/.cargo}
if command -v cargo-audit >/dev/null && [[ -d "$cargo_home/advisory-db" ]]; then
    cargo audit --no-fetch --stale
elif command -v cargo-deny >/dev/null && compgen -G "$cargo_home/advisory-dbs/*" >/dev/null; then
    cargo deny --offline check advisories
else
    echo "advisories: not checked: needs cargo-audit or cargo-deny with a local copy of the advisory database"
fi
