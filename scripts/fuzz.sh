#!/usr/bin/env bash
# Fuzzes the library in process: cargo-fuzz runs the targets of fuzz/libfuzzer.
#
#   scripts/fuzz.sh run SECONDS [TARGET...]   run each target, or all targets, for SECONDS; $FUZZ_JOBS at a time
#   scripts/fuzz.sh keep [TARGET...]          replace fuzz/corpus by at most 250 of the inputs found for each target
#
# FUZZ_SANITIZER=address runs the targets with AddressSanitizer. $NIGHTLY is the Rust toolchain. Inputs that fail are
# in target/fuzz/failed/.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
export fuzz=$target/fuzz PATH="$target/tools/fuzz/bin:$PATH" ASAN_OPTIONS=allocator_may_return_null=1
export cargo_fuzz="cargo +${NIGHTLY:-nightly} fuzz"
# The fuzzer does not need to know the operands of comparisons, because no input has to contain a certain value. It is
# a third faster without recording them.
export build="--fuzz-dir fuzz/libfuzzer --target-dir $fuzz/build --no-trace-compares"
build+=" --sanitizer ${FUZZ_SANITIZER:-none}"
# Longer inputs do not reach more code. A value takes at most 1 MiB (fuzz/src/limit.rs), and unions of several values
# up to 64 MiB. Code without `unsafe` does not leak. Weighing inputs would take longer than running them.
export limits="-max_len=512 -malloc_limit_mb=100 -rss_limit_mb=2048 -timeout=10 -detect_leaks=0 -entropic=0 -reload=0"

verb=${1:-}
shift || true
case "$verb" in
    run) export seconds=$1 && shift ;;
    keep) ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
(($#)) || set -- $(basename -s .rs -a fuzz/libfuzzer/fuzz_targets/*.rs)
$cargo_fuzz build $build
mkdir -p "$fuzz/failed" "${@/#/$fuzz/corpus/}"
if [[ "$verb" == run ]]; then
    printf '%s\n' "$@" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I@ bash -c '
        $cargo_fuzz run $build @ "$fuzz/corpus/@" fuzz/corpus/@ -- $limits -max_total_time="$seconds" \
            -artifact_prefix="$fuzz/failed/@-" >"$fuzz/@.log" 2>&1 || { tail -n 60 "$fuzz/@.log"; exit 1; }
        echo "fuzz: @: $(tail -n 1 "$fuzz/@.log")"'
else
    for name in "$@"; do
        find "$fuzz/corpus/$name" -type f -exec cp -t "fuzz/corpus/$name" {} +
        $cargo_fuzz cmin $build "$name" "fuzz/corpus/$name" -- $limits -use_counters=0
        # Keeps the longest inputs, which reach most code.
        (cd "fuzz/corpus/$name" && ls -Sr | head -n -250 | xargs -r rm --)
    done
fi
