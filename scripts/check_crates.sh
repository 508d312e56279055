#!/usr/bin/env bash
# Checks crates: format and lints of crates outside the workspace, licences and sources of all dependencies,
# advisories if they can be downloaded, the library's list of public names, and that the oldest Rust compiles.
#
#   scripts/check_crates.sh            check; `scripts/tools.sh lint` must have fetched cargo-deny
#   scripts/check_crates.sh surface    rewrite core/surface.txt
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
# These crates have lock files of their own. fuzz/libfuzzer is not among them, because it needs the nightly
# toolchain.
alone=(tests/clients/rust tests/surface)
libfuzzer=fuzz/libfuzzer

surface() {
    RUSTDOC=$PWD/tests/surface/rustdoc.sh cargo rustdoc --quiet --locked --package rollcall-core --lib -- \
        -Z unstable-options --output-format json
    cargo run --quiet --locked --manifest-path tests/surface/Cargo.toml "$target/doc/rollcall_core.json"
}
deny() {
    local folder
    for folder in . "${alone[@]}" "$libfuzzer"; do
        "$target/tools/lint/bin/cargo-deny" --locked --config "$PWD/deny.toml" --manifest-path "$folder/Cargo.toml" "$@"
    done
}

if [[ "${1:-}" == surface ]]; then
    surface >"$target/surface.txt"
    exec mv "$target/surface.txt" core/surface.txt
fi
cargo fmt --check --manifest-path "$libfuzzer/Cargo.toml"
for folder in "${alone[@]}"; do
    cargo fmt --check --manifest-path "$folder/Cargo.toml"
    cargo clippy --all-targets --locked --manifest-path "$folder/Cargo.toml" -- -D warnings
done
surface | diff -u core/surface.txt - || {
    echo "lint: an example is missing, or the library shows something else than core/surface.txt says: hide it," \
        "or run  make surface" >&2
    exit 1
}
deny check licenses bans sources
# Without a network, the check uses an old local copy of the advisories, or is skipped.
if timeout 60 "$target/tools/lint/bin/cargo-deny" --config deny.toml fetch db 2>/dev/null ||
    compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; then
    deny --offline check advisories
else
    echo "lint: advisories not checked: they are on a network, and there is no local copy"
fi
oldest=$(sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml)
if rustup toolchain list 2>/dev/null | grep -q "^$oldest-"; then
    cargo "+$oldest" check --workspace --lib --bins --locked
else
    echo "lint: not compiled with the oldest Rust:  rustup toolchain install $oldest  lets it"
fi
