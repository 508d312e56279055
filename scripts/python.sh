#!/usr/bin/env bash
# The Python package.
#
#   scripts/python.sh wheel             build the wheel for glibc 2.28 and the source distribution, into
#                                       target/python/wheels/
#   scripts/python.sh plain             build a wheel for this machine, compiled like the tests, into
#                                       target/python/plain/
#   scripts/python.sh test              check format and types, and run python/tests with the plain wheel installed
#   scripts/python.sh bench [OPTION..]  run python/benches/bench.py with the wheel installed
#   scripts/python.sh behind [--quick]  run python/benches/write_behind.py on the server at ROLLCALL_URL, with the plain
#                                       wheel installed
#   scripts/python.sh engines NAME..    run tests/engines for datafusion, duckdb or spark on the server at ROLLCALL_URL,
#                                       with the plain wheel installed
#   scripts/python.sh bench-engines NAME..  run python/benches/engines.py for them, with the wheel installed
#
# Each version of Python has a virtual environment in target/python/, with the packages that a requirements.txt of
# python/tests, python/benches, tests/engines or tests/engines/spark pins. It is made again when the pins change. The
# tests run on `python3` and on the newest Python, both from 3.11 on. The newest is looked for by names such as
# python3.12, in pyenv, and in the folders of GitHub's machines. Tests with servers use ROLLCALL_MODULE,
# ROLLCALL_SERVER and ROLLCALL_TOOL.
#
# First run `scripts/setup.sh build wheels`, and `node` for types. `wheel` also needs `scripts/tools.sh zig
# cyclonedx`. ARCH=arm64 makes the wheel for AArch64 on x86-64, in target/python/wheels-arm64/, without the source
# distribution.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

sources=$PWD/python
# With ARCH=arm64 only compiled files go to another folder.
target_dir=${CARGO_TARGET_DIR%/arm64}
folder=$target_dir/python
export MYPY_CACHE_DIR=$folder/mypy
wheels=$folder/wheels
plain=$folder/plain
pip=(python3 -m pip --quiet --disable-pip-version-check)

# Prints the path of the environment of Python $1 with the versions that the file $2 pins. Makes the environment if it
# is missing.
environment() {
    local version path
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    path=$folder/$(basename "$(dirname "$2")")-$version
    if ! cmp -s "$path/made-by" "$2"; then
        echo "python: installing what tests and benchmarks need, for Python $version" >&2
        rm -rf "$path"
        # The environment has no pip of its own, because Debian leaves out ensurepip. The system's pip installs into
        # it.
        "$1" -m venv --without-pip "$path"
        # pybloom-live and pyspark have no wheels, so they are built from source.
        "${pip[@]}" --python "$path/bin/python" install --progress-bar off --only-binary=:all: \
            --no-binary pybloom-live,pyspark --require-hashes --requirement "$2" >&2
        cp "$2" "$path/made-by"
    fi
    echo "$path"
}

# Runs maturin with the action $1, which writes into the folder $2.
maturin() {
    "$(environment python3 "$sources/tests/requirements.txt")/bin/maturin" "$1" --manifest-path "$sources/Cargo.toml" \
        --out "$2" "${@:3}"
}

# Builds a wheel for the Rust target $1 into the folder $2, with further options of maturin.
build() {
    rm -rf "$2"
    # The wheel contains the licences of all crates that are compiled into it.
    scripts/third_party.py "$1" rollcall-python >"$sources/THIRD-PARTY"
    maturin build "$2" --locked --quiet "${@:3}"
}

# Installs the wheel of the folder $2 into the environment $1.
install_wheel() {
    "${pip[@]}" --python "$1/bin/python" install --force-reinstall --no-deps --no-index "$2"/rollcall_redis-*.whl
}

# Prints the versions of Python from 3.11 on, each once. The first is python3, unless it is older.
pythons() {
    local candidates=(python3) name seen=" " version
    for minor in 11 12 13 14 15; do
        candidates+=("python3.$minor")
        for name in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python3 \
            "${RUNNER_TOOL_CACHE:-/opt/hostedtoolcache}"/Python/3."$minor".*/*/bin/python3; do
            [[ ! -x "$name" ]] || candidates+=("$name")
        done
    done
    for name in "${candidates[@]}"; do
        version=$("$name" -c 'import sys; sys.version_info >= (3, 11) and print("%d.%d" % sys.version_info[:2])' \
            2>/dev/null) || continue
        [[ -n "$version" && "$seen" != *" $version "* ]] || continue
        seen+="$version "
        echo "$name"
    done
}

case "${1:-}" in
    wheel)
        # Compiles like scripts/package.sh: for an old glibc, without paths of this machine, with the last commit's
        # time.
        target=$(scripts/package.sh target)
        if [[ ${target%%-*} != "$(uname -m)" ]]; then
            [[ -n ${ROLLCALL_ARM64:-} ]] || exec scripts/arm64.sh run "$0" wheel
            wheels+=-arm64
        fi
        bill=$folder/rollcall-python.cdx.json
        environment python3 "$sources/tests/requirements.txt" >/dev/null
        scripts/package.sh bill python "$bill"
        zig=$target_dir/tools/zig
        export PATH=$zig/bin:$PATH PYTHONPATH=$zig SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
        export RUSTFLAGS="--remap-path-prefix=$PWD=/rollcall"
        RUSTFLAGS+=" --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/crates"
        build "$target" "$wheels" --release --target "$target" --zig --compatibility manylinux_2_28 \
            --sbom-include "$bill"
        # maturin warns of missing fields of crates that are not published.
        [[ -n ${ROLLCALL_ARM64:-} ]] || maturin sdist "$wheels" 2>"$folder/sdist.log" ||
            { cat "$folder/sdist.log" >&2; exit 1; }
        ls "$wheels"
        ;;
    plain)
        # Compiles like the tests, so that much is already compiled.
        build "$(rustc --version --verbose | sed -n 's/^host: //p')" "$plain" --profile dev \
            --config .cargo/optimised.toml
        ;;
    test)
        mapfile -t found < <(pythons)
        ((${#found[@]})) || { echo "python: no Python from 3.11 on is here" >&2; exit 1; }
        path=$(environment "${found[0]}" "$sources/tests/requirements.txt")
        install_wheel "$path" "$plain"
        cd "$sources"
        "$path/bin/ruff" format --check --quiet .
        "$path/bin/ruff" check --quiet .
        "$path/bin/mypy" --no-error-summary rollcall_redis
        # mypy checks the tests folder by folder, because each folder has its own `conftest`.
        for tests in tests/ tests/*/; do
            files=("$tests"*.py)
            [[ ! -e "${files[0]}" ]] ||
                (cd "$tests" && "$path/bin/mypy" --no-error-summary --config-file "$sources/pyproject.toml" ./*.py)
        done
        "$path/bin/pyright" --pythonpath "$path/bin/python" rollcall_redis tests/*typed.py
        # Compares the stub file with the installed module.
        (cd "$path" && "$path/bin/python" -P -m mypy.stubtest --concise rollcall_redis._rollcall)
        # The newest Python runs the tests only on the first server. Differences between servers do not depend on
        # Python, and the stable ABI covers the versions in between. It runs while `python3` waits for servers.
        run_tests() {
            echo "== tests of the Python package, on $("$1/bin/python" --version)"
            # -P makes Python import the installed package instead of the folder next to the tests.
            PYTHONDONTWRITEBYTECODE=1 "$1/bin/python" -P -W error::ResourceWarning -m pytest -q -p no:cacheprovider \
                tests
        }
        newest() {
            local path
            ((${#found[@]} > 1)) || return 0
            [[ -z "${ROLLCALL_SERVER:-}" ]] || export ROLLCALL_SERVER=${ROLLCALL_SERVER%%:*}
            path=$(environment "${found[-1]}" "$sources/tests/requirements.txt")
            install_wheel "$path" "$plain"
            run_tests "$path"
        }
        newest >"$folder/newest.log" 2>&1 &
        status=0
        run_tests "$path" || status=$?
        wait $! || status=$?
        cat "$folder/newest.log"
        exit "$status"
        ;;
    bench)
        path=$(environment python3 "$sources/benches/requirements.txt")
        install_wheel "$path" "$wheels"
        PYTHONDONTWRITEBYTECODE=1 "$path/bin/python" -P "$sources/benches/bench.py" "${@:2}"
        ;;
    behind)
        path=$(environment python3 "$sources/tests/requirements.txt")
        install_wheel "$path" "$plain"
        PYTHONDONTWRITEBYTECODE=1 "$path/bin/python" -P "$sources/benches/write_behind.py" "${@:2}" "$ROLLCALL_URL"
        ;;
    engines | bench-engines)
        for engine in "${@:2}"; do
            pins=tests/engines/requirements.txt
            [[ $engine != spark ]] || pins=tests/engines/spark/requirements.txt
            path=$(environment python3 "$pins")
            export PYTHONDONTWRITEBYTECODE=1
            if [[ $1 == engines ]]; then
                install_wheel "$path" "$plain"
                echo "== tests of $engine"
                "$path/bin/python" -P -m pytest -q -p no:cacheprovider -k "$engine" tests/engines
            else
                install_wheel "$path" "$wheels"
                "$path/bin/python" -P "$sources/benches/engines.py" $([[ ${QUICK:-0} == 0 ]] || echo --quick) "$engine"
            fi
        done
        ;;
    *)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
