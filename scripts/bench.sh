#!/usr/bin/env bash
# Runs the measurements. A full run writes tables into target/, and some figures into docs/ and README.md. A
# quick run (QUICK=1), or a run of some parts (ONLY=words), gives rough figures.
#
#   scripts/bench.sh server      compare with RedisBloom, on redis-server or on SERVER=redis-8.2.3
#   scripts/bench.sh accuracy    measure every claim about errors and rates; fails if a claim does not hold
set -euo pipefail
cd "$(dirname "$0")/.."
quick=${QUICK:-}
[[ "$quick" != 0 ]] || quick=
# A quick run is compiled like the tests, without link-time optimisation, which takes a fifth of the time.
options=(--profile bench)
[[ -z "$quick" ]] || options=(--profile dev --config .cargo/optimised.toml)
options+=(--workspace --locked)

case "${1:-}" in
    server)
        server=${SERVER:-redis-server}
        # Rows with this build have a column of their own.
        if [[ "${AVX512:-}" == no ]]; then
            grep -qw avx512_vpopcntdq /proc/cpuinfo || {
                echo "bench: this processor has no AVX-512, so make bench measures the same without AVX512=no"
                exit
            }
            ROLLCALL_MODULE=$(make --no-print-directory --silent no-avx512)
            export AVX512 ROLLCALL_MODULE
        fi
        [[ -n "$(scripts/servers.py path redisbloom-2.8.2)" ]] ||
            { echo "bench: RedisBloom is for x86-64 Linux only" >&2; exit 1; }
        # The rows `leases` are also measured with redis-py.
        [[ ",${ONLY:-}," != *,leases,* ]] || scripts/clients.sh fetch python
        # Saving a gigabyte may take long, so time limits are ten times as long.
        BENCH_QUICK=$quick BENCH_ONLY=${ONLY:-} ROLLCALL_PATIENCE=10 PYTHONPATH=target/clients/python \
            scripts/servers.py with "$server" -- cargo bench "${options[@]}" --bench server
        ;;
    accuracy) ACCURACY_QUICK=$quick ACCURACY_ONLY=${ONLY:-} cargo bench "${options[@]}" --bench accuracy ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
