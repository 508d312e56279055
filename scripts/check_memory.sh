#!/usr/bin/env bash
# Runs server tests on servers that are watched for errors of memory, and shows those in which code of ours has a part:
# whose report names a place in Rust, for all Rust in the process is the module's. Exits with 1 then, or if a test
# fails.
#
#   scripts/check_memory.sh memcheck [FILTER...]   under valgrind's memcheck
#   scripts/check_memory.sh sanitize [FILTER...]   with a module that has the address and leak sanitizer, by $NIGHTLY
#
# FILTERs are of test names in `cargo test --test server --test fuzz`. The server is $ROLLCALL_SERVER, else
# redis-server. Its malloc is replaced by that of the tool, so all that the module takes is watched block by block. Most
# tests end their servers by force, and then nothing is said about leaks; those that are shut down in good order are
# asked for them.
set -euo pipefail
cd "$(dirname "$0")/.."
(($#)) || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tool=$1
shift
# By default neither what has a clock of its own, nor what limits or measures memory, nor what adds very many items.
(($#)) || set -- any_commands commands_bloom commands_counting commands_members commands_admission persistence_golden \
    persistence_corruption types_generic replication_effects \
    $([[ "$tool" != sanitize ]] || echo commands_beside commands_expiry errors events persistence_full_disk \
        persistence_restart replication_cut replication_sync types_payload)
target=${CARGO_TARGET_DIR:-$PWD/target}
server=$(command -v "${ROLLCALL_SERVER:-redis-server}") || { echo "$tool: no server" >&2; exit 1; }
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT

if [[ "$tool" == memcheck ]]; then
    # The compression that servers use for strings reads its table before it has written it, by design.
    for kind in Cond Value8; do
        printf '{\n compression\n Memcheck:%s\n fun:lzf_compress\n}\n' "$kind"
    done >"$reports/suppressions"
    # Where the allocator is: in a library, or in the program itself.
    allocator=NONE
    if ldd "$server" | grep -q jemalloc; then allocator='*jemalloc*'; fi
    watched="valgrind --quiet --error-limit=no --num-callers=40 --leak-check=full --show-leak-kinds=definite
        --soname-synonyms=somalloc=$allocator --suppressions=$reports/suppressions --log-file=$reports/report.%p"
    # How many times as long as usual the tests wait.
    export ROLLCALL_PATIENCE=20 ROLLCALL_MODULE=${ROLLCALL_MODULE:-$target/release/librollcall.so}
else
    triple=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS=-Zsanitizer=address CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
        cargo "+${NIGHTLY:-nightly}" build --release --locked --lib --target "$triple" --target-dir "$target/sanitize"
    # Of libraries that a test preloads itself, the sanitizer's comes first.
    watched="env LD_PRELOAD=$(cc -print-file-name=libasan.so)\${LD_PRELOAD:+:\$LD_PRELOAD}
        ASAN_OPTIONS=detect_leaks=1:exitcode=0:allocator_may_return_null=1:log_path=$reports/report"
    export ROLLCALL_PATIENCE=4 ROLLCALL_MODULE=$target/sanitize/$triple/release/librollcall.so
fi
printf '#!/bin/sh\nexec %s %s "$@"\n' "${watched//$'\n'/ }" "$server" >"$reports/server"
chmod +x "$reports/server"

failed=0
ROLLCALL_SERVER=$reports/server cargo test --locked --no-fail-fast --test server --test fuzz -- "$@" || failed=1
if [[ "$tool" == sanitize ]]; then
    # With another malloc than jemalloc, filters do not have their bits in the blocks of their entries.
    RUSTFLAGS=-Zsanitizer=address cargo "+${NIGHTLY:-nightly}" test --locked --lib --target "$triple" \
        --target-dir "$target/sanitize" types::entry || failed=1
fi
shopt -s nullglob
# Paragraphs, without the process at the beginning of valgrind's lines.
ours=$(sed -E 's/^==[0-9]+== ?//' /dev/null "$reports"/report* |
    awk -v RS= -v ORS='\n\n' '/(at|by) 0x|#[0-9]+ 0x/ && /\.rs:[0-9]|rollcall/')
echo "$tool: $(find "$reports" -name 'report*' | wc -l) reports, errors of ours: ${ours:-none}"
[[ "$failed" == 0 && -z "$ours" ]]
