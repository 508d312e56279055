#!/usr/bin/env bash
# Runs cargo-mutants: it changes lines of core/src, and checks whether a test fails. .cargo/mutants.toml has the
# changes that no test can notice.
#
#   scripts/mutants.sh [SINCE]    the lines that are new since a commit, else main; FILES="core/src/persist/*.rs": these
#                                 files whole; NOTICED_BY="--lib bloom::": by these tests alone
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
# A build folder of its own, so that dependencies are compiled only once.
out=$target/mutants
mkdir -p "$out"
git diff "${1:-main}" -- core/src >"$out/diff"
set -f
what=(--in-diff "$out/diff")
[[ -z "${FILES:-}" ]] || what=($(printf -- '--file=%s ' $FILES))
PATH="$target/tools/mutants/bin:$PATH" CARGO_TARGET_DIR=$out/build \
    cargo mutants --package rollcall-core --output "$out" "${what[@]}" -- \
        ${NOTICED_BY:---lib --tests --test format --test slices --test windowed_counters}
