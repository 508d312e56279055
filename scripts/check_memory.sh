#!/usr/bin/env bash
# Runs server tests on servers that are checked for memory errors, and shows the errors whose report names a place in
# Rust code. All Rust in the process belongs to the module. Exits with 1 if there is such an error, or if a test
# fails.
#
#   scripts/check_memory.sh memcheck [FILTER...]   under valgrind's memcheck
#   scripts/check_memory.sh sanitize [FILTER...]   with the address and leak sanitizer in the module, by $NIGHTLY
#
# FILTERs select tests of `cargo test --test server --test fuzz` by name. The server is $ROLLCALL_SERVER, by default
# redis-server. The tool replaces the server's malloc, so it sees every block of the module. Most tests end their
# servers by force, and then leaks are not reported. Leaks are reported for servers that a test shuts down in order.
set -euo pipefail
cd "$(dirname "$0")/.."
(($#)) || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tool=$1
shift
# By default, tests with their own clock, with memory limits, or with very many items are left out.
(($#)) || set -- any_commands commands_bloom commands_counting commands_members commands_admission persistence_golden \
    persistence_corruption types_generic replication_effects \
    $([[ "$tool" != sanitize ]] || echo commands_beside commands_expiry errors events persistence_full_disk \
        persistence_restart replication_cut replication_sync types_payload)
target=${CARGO_TARGET_DIR:-$PWD/target}
server=$(command -v "${ROLLCALL_SERVER:-redis-server}") || { echo "$tool: no server" >&2; exit 1; }
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT

if [[ "$tool" == memcheck ]]; then
    # The compression that servers use for strings reads its table before writing it. This is intended.
    for kind in Cond Value8; do
        printf '{\n compression\n Memcheck:%s\n fun:lzf_compress\n}\n' "$kind"
    done >"$reports/suppressions"
    # The allocator is in a library, or in the program itself.
    allocator=NONE
    if ldd "$server" | grep -q jemalloc; then allocator='*jemalloc*'; fi
    watched="valgrind --quiet --error-limit=no --num-callers=40 --leak-check=full --show-leak-kinds=definite
        --soname-synonyms=somalloc=$allocator --suppressions=$reports/suppressions --log-file=$reports/report.%p"
    # Time limits of the tests are this number of times as long.
    export ROLLCALL_PATIENCE=20 ROLLCALL_MODULE=${ROLLCALL_MODULE:-$target/release/librollcall.so}
else
    triple=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS=-Zsanitizer=address CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
        cargo "+${NIGHTLY:-nightly}" build --release --locked --lib --target "$triple" --target-dir "$target/sanitize"
    # If a test preloads libraries itself, the sanitizer's library must come first.
    watched="env LD_PRELOAD=$(cc -print-file-name=libasan.so)\${LD_PRELOAD:+:\$LD_PRELOAD}
        ASAN_OPTIONS=detect_leaks=1:exitcode=0:allocator_may_return_null=1:log_path=$reports/report"
    export ROLLCALL_PATIENCE=4 ROLLCALL_MODULE=$target/sanitize/$triple/release/librollcall.so
fi
printf '#!/bin/sh\nexec %s %s "$@"\n' "${watched//$'\n'/ }" "$server" >"$reports/server"
chmod +x "$reports/server"

failed=0
ROLLCALL_SERVER=$reports/server cargo test --locked --no-fail-fast --test server --test fuzz -- "$@" || failed=1
if [[ "$tool" == sanitize ]]; then
    # Under the sanitizer no malloc aligns blocks to only 8 bytes. The tests of the allocator imitate one that does.
    RUSTFLAGS=-Zsanitizer=address cargo "+${NIGHTLY:-nightly}" test --locked --lib --target "$triple" \
        --target-dir "$target/sanitize" server:: || failed=1
fi
shopt -s nullglob
# Splits the reports into paragraphs, without the process id at the beginning of valgrind's lines.
ours=$(sed -E 's/^==[0-9]+== ?//' /dev/null "$reports"/report* |
    awk -v RS= -v ORS='\n\n' '/(at|by) 0x|#[0-9]+ 0x/ && /\.rs:[0-9]|rollcall/')
echo "$tool: $(find "$reports" -name 'report*' | wc -l) reports, errors of ours: ${ours:-none}"
[[ "$failed" == 0 && -z "$ours" ]]
