#!/usr/bin/env bash
# Measures. A quick run (QUICK=1), or one of some sections (ONLY=words), shows that all works and roughly what it gives.
# They write below target/; only a full run is worth keeping in docs/.
#
#   scripts/bench.sh server      against RedisBloom and a floor, both built and fetched before
#                                on redis-server, or on SERVER=redis-8.2.3
#   scripts/bench.sh accuracy    every claim about errors and rates; fails if one does not hold
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
quick=${QUICK:-}
[[ "$quick" != 0 ]] || quick=
part=$quick${ONLY:-}
# A quick run is compiled as the tests are, without link-time optimisation: in a fifth of the time.
options=(--profile bench) folder=release
[[ -z "$quick" ]] || options=(--profile test --config .cargo/optimised.toml) folder=debug
options+=(--workspace --locked)

case "${1:-}" in
    server)
        # The document has what the run on redis-server alone gives, these two pages what the last run on each server gave.
        document=docs/benchmarks-tables.md rows=docs/benchmarks pages=docs/benchmarks.md,docs/benchmarks-tables.md
        if [[ -n "$part" ]]; then
            document=$target/benchmarks.md rows=$target/benchmarks pages=
        elif [[ -n "${SERVER:-}" ]]; then
            document=$target/benchmarks.md
        else
            pages+=,README.md,docs/choosing.md,docs/operations.md,docs/counting.md,docs/windows.md
        fi
        rm -f "$target/benchmarks.md"
        peer=$(scripts/servers.py path redisbloom-2.8.2)
        [[ -n "$peer" ]] || { echo "bench: RedisBloom is for x86-64 Linux only" >&2; exit 1; }
        server=${SERVER:+$(scripts/servers.py path "$SERVER")}
        cargo build "${options[@]}" --example floor --bin rollcall
        BENCH_QUICK=$quick BENCH_ONLY=${ONLY:-} BENCH_DOCUMENT=$document BENCH_ROWS=$rows BENCH_PAGES=$pages BENCH_PEER=$peer \
            BENCH_SERVER=${server:-redis-server} BENCH_MODULE=$target/release/librollcall.so BENCH_FLOOR=$target/$folder/examples/libfloor.so \
            BENCH_TOOL=$target/$folder/rollcall cargo bench "${options[@]}" --bench server
        [[ -n "$part${SERVER:-}" ]] || cargo bench --locked --package rollcall-core-bench --bench core
        ;;
    accuracy)
        template=$PWD/docs/accuracy-tables.md document=$PWD/docs/accuracy-tables.md page=$PWD/docs/accuracy.md
        [[ -z "$quick" ]] || document=$target/accuracy.md page=
        ACCURACY_QUICK=$quick ACCURACY_ONLY=${ONLY:-} ACCURACY_TEMPLATE=$template ACCURACY_DOCUMENT=$document \
            ACCURACY_PAGE=$page cargo bench "${options[@]}" --bench accuracy
        ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
