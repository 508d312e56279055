#!/usr/bin/env bash
# Builds the images, runs each with a read-only root, and follows docs/containers.md and packaging/images/. `make
# test-image` runs it, as root. Images, containers and volumes are in target/image/, apart from those of the machine.
#
# ARCH=arm64 runs images for AArch64 under qemu. The examples for Compose and Kubernetes are left out then, because
# they name other images. BASES=registry builds on the official images, if a registry can be reached.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'test-image: %s\n' "$*" >&2; exit 1; }
step() { printf '== %s\n' "$*"; }

here=$(dpkg --print-architecture)
export ARCH=${ARCH:-$here}
work=$PWD/$(scripts/image.sh folder)
mkdir -p "$work"
# With runc and these limits, Podman works even inside containers and virtual machines.
cat >"$work/containers.conf" <<END
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
END
cat >"$work/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$work/storage"
runroot = "/run/rollcall-test-image-$ARCH"
END
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf

finish() {
    { podman pod rm --all --force --time 1; podman rm --all --force --time 1; podman volume rm --all --force; } \
        >/dev/null 2>&1 || true
}
finish
trap finish EXIT

[[ ${BASES:-} == registry ]] || packaging/test/base_images.sh
scripts/image.sh build
# Without systemd, Podman warns that nothing runs the health checks. This test runs them itself.
podman() {
    local usual='systemd connection|connect to syslog|found in DB|does not match the expected platform'
    command podman "$@" 2> >(grep -vE "$usual" >&2)
}
# Runs the image $1 with arguments for the server.
run() {
    podman run --detach --name server --network none --read-only --cap-drop all --security-opt no-new-privileges \
        --volume data:/data "$@" >/dev/null
    ready server || fail "$1 is not healthy: $(podman logs server 2>&1 | tail -n 5)"
}
# Waits for the health check of a container.
ready() { for _ in {1..100}; do podman healthcheck run "$1" >/dev/null 2>&1 && return; sleep 0.2; done; return 1; }
password=
cli() {
    podman exec ${password:+--env "REDISCLI_AUTH=$password"} "${container:-server}" \
        sh -c '$(command -v valkey-cli || command -v redis-cli) "$@"' cli "$@"
}
# The loaded modules, without those that are compiled into the server.
modules() { cli MODULE LIST | sed -n '/^name$/ { n; p }' | grep -vxE 'vectorset|lua'; }
option() { cli CONFIG GET "$1" | tail -n 1; }
expect() {
    local expected=$1 found
    found=$("${@:2}" 2>&1) || true
    [[ $found == "$expected" ]] || fail "${*:2}: ${found:-nothing}, and not $expected"
}
stop() { podman stop --time 20 server >/dev/null && podman rm server >/dev/null; }

for flavour in $(scripts/image.sh list | grep -v files); do
    name=$(scripts/image.sh name "$flavour")
    step "$name: answers, as user 999, with a read-only root"
    run "$name"
    expect 1 cli BF.ADD seen token-1
    expect 2 cli LC.ADD visitors ann ben
    expect 999 podman exec server id -u
    ! podman exec server touch /etc/written 2>/dev/null || fail "the root can be written"
    expect rollcall modules
    expect "rollcall $(scripts/package.sh version)" podman exec server rollcall --version
    podman exec server rollcall top --once >"$work/top" || fail "the tool does not read the server: $(cat "$work/top")"
    grep -q visitors "$work/top" || fail "the tool does not see the counter: $(cat "$work/top")"
    stop
    step "$name: data live on in the volume; options; a password"
    run "$name" --rollcall.lc-exact-limit 500 --requirepass secret
    expect "NOAUTH Authentication required." cli PING
    password=secret
    expect 1 cli BF.EXISTS seen token-1
    expect 2 cli LC.COUNT visitors
    expect 500 option rollcall.lc-exact-limit
    password=
    stop
    podman volume rm data >/dev/null
    step "$name: its health check fails without a server"
    podman run --detach --name server "$name" sh -c 'sleep 60' >/dev/null
    ! podman healthcheck run server >/dev/null 2>&1 || fail "healthy without a server"
    podman rm --force --time 0 server >/dev/null
done

files=$(scripts/image.sh name files)
step "$files: module for both C libraries, tool and licences, and nothing else"
podman create --name files "$files" >/dev/null
podman export files | tar -tf - | grep -v '/$' | grep -vE '^(dev|etc|proc|run|sys)(/|$)' | LC_ALL=C sort >"$work/files"
podman rm files >/dev/null
licences="licenses/LICENSE-APACHE licenses/LICENSE-MIT licenses/THIRD-PARTY"
expect "bin/rollcall gnu/librollcall.so $licences musl/librollcall.so" xargs -a "$work/files"
expect "rollcall $(scripts/package.sh version)" podman run --rm --network none --read-only "$files" --version
context=$work/context/$ARCH
needed() { readelf --dynamic "$context/$1" | sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p' | xargs; }
expect "libc.so" needed musl/librollcall.so
expect "" needed bin/rollcall

answers() {
    for _ in {1..50}; do [[ $(cli BF.ADD seen "$RANDOM-$RANDOM" 2>/dev/null) == 1 ]] && return; sleep 0.2; done
    return 1
}
# Runs a server with the module $1. Further arguments are for podman.
mounted() {
    podman run --detach --name server --network none --read-only --user 999 --tmpfs /data:mode=1777 "${@:2}" \
        --loadmodule "$1" >/dev/null
    answers || fail "no answer: $(podman logs server 2>&1 | tail -n 5)"
    podman rm --force --time 0 server >/dev/null
}
for flavour in valkey redis-alpine; do
    base=$(scripts/image.sh base "$flavour")
    libc=gnu options=()
    # The entrypoint of Redis 8's image would also load RedisBloom, so it is bypassed.
    [[ $flavour == valkey ]] || { libc=musl && options=(--entrypoint redis-server); }
    step "$base as it is, with the module from $files: as an image volume, and from an init container"
    mounted "/rollcall/$libc/librollcall.so" --mount "type=image,source=$files,destination=/rollcall" "${options[@]}" \
        "$base"
    podman run --rm --network none --read-only --user 0 --volume modules:/modules \
        "$files" install "/$libc/librollcall.so" /modules >/dev/null
    mounted /modules/librollcall.so --volume modules:/modules:ro "${options[@]}" "$base"
    podman volume rm modules >/dev/null
done

passed="== make test-image: $(scripts/image.sh list | wc -l) images"
[[ $ARCH == "$here" ]] || { echo "$passed for $ARCH are right"; exit; }

step "compose.yaml: its schema, and up"
/usr/bin/python3 packaging/test/manifests.py check
export ROLLCALL_PORT=16479
compose() {
    podman-compose --file packaging/images/compose.yaml --project-name rollcall "$@" >>"$work/compose.log" 2>&1
}
compose up --detach || fail "podman-compose up: $(tail -n 5 "$work/compose.log")"
container=$(podman ps --quiet --filter label=io.podman.compose.project=rollcall)
ready "$container" || fail "the service is not healthy: $(podman logs "$container" 2>&1 | tail -n 5)"
expect 1 cli BF.ADD seen token-1
compose down
compose up --detach
container=$(podman ps --quiet --filter label=io.podman.compose.project=rollcall)
ready "$container"
expect 1 cli BF.EXISTS seen token-1
compose down

step "kubernetes.yaml: its pod, with the volume, played"
/usr/bin/python3 packaging/test/manifests.py pod >"$work/pod.yaml"
played() {
    podman kube play "$work/pod.yaml" >/dev/null || fail "podman kube play failed"
    container=valkey-0-valkey
    for _ in {1..100}; do [[ $(cli PING 2>/dev/null) == PONG ]] && return; sleep 0.2; done
    fail "no answer: $(podman logs "$container" 2>&1 | tail -n 5)"
}
# A process that cleans up after a container may still hold its mounts. Removing fails then, so it is tried again.
removed() {
    for _ in {1..20}; do podman pod rm --all --force --time 20 >"$work/removed" 2>&1 && return; sleep 0.5; done
    fail "podman pod rm failed: $(tail -n 5 "$work/removed")"
}
played
expect 1 cli BF.ADD seen token-1
expect 2 cli LC.ADD visitors ann ben
removed
played
expect 1 cli BF.EXISTS seen token-1
expect 2 cli LC.COUNT visitors
removed
echo "$passed, compose and Kubernetes examples are right"
