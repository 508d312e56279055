#!/usr/bin/env bash
# Checks crates: forms and lints of those outside the workspace, licences and sources of all that any is built of,
# advisories where they can be had, the list of what the library shows, and that the oldest Rust compiles.
#
#   scripts/check_crates.sh            check; `scripts/tools.sh lint` has fetched cargo-deny
#   scripts/check_crates.sh surface    write core/surface.txt anew
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
# They have lock files of their own. The third compiles with the nightly toolchain only.
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
# An old local copy is better than none. Nothing fails without a network.
if timeout 60 "$target/tools/lint/bin/cargo-deny" --config deny.toml fetch db 2>/dev/null ||
    compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; then
    deny --offline check advisories
else
    echo "lint: advisories not checked: they are on a network, and there is no local copy"
fi
oldest=$(sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml)
if rustup toolchain list 2>/dev/null | grep -q "^$oldest"; then
    cargo "+$oldest" check --workspace --lib --bins --locked
else
    echo "lint: not compiled with the oldest Rust:  rustup toolchain install $oldest  lets it"
fi
