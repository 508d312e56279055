#!/usr/bin/env bash
# Installs a package, runs a server with its module, and removes it again, in a temporary root (scratch_root.sh).
#
#   packaging/test/scratch_root.sh packaging/test/install.sh deb FILE.deb DOCUMENT
#   packaging/test/scratch_root.sh packaging/test/install.sh tarball FILE.tar.gz VERSION
#
# The server is the machine's redis-server. It runs as the user, and under the rule, of Debian's unit: code is
# executed and loaded from ExecPaths only.
set -euo pipefail
root=$ROLLCALL_ROOT
kind=$1 package=$2
unit=/lib/systemd/system/redis-server.service

fail() { printf 'install test: %s\n' "$*" >&2; exit 1; }
step() { printf 'install test: %s\n' "$*"; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
expect() {
    local wanted=$1 got
    shift
    got=$("$@" 2>&1) || fail "failed: $*: $got"
    [[ $got == "$wanted" ]] || fail "expected '$wanted', got '$got': $*"
}

# --- The rule of Debian's unit ---

[[ -e $root$unit ]] || fail "$unit is missing: install Debian's redis-server, or run  scripts/setup.sh server"
grep -qx 'NoExecPaths=/' "$root$unit" ||
    fail "$unit has no NoExecPaths=/ any more: look at what it has, and change this test"
read -ra exec_paths <<<"$(sed -n 's/^ExecPaths=//p' "$root$unit")"

# The server sees the same files, but may execute code only from exec_paths.
confined=$(dirname "$root")/confined
confine() {
    mkdir -p "$confined"
    mount --bind "$root" "$confined"
    mount -o remount,bind,noexec "$confined"
    local folder
    for folder in "${exec_paths[@]}"; do
        folder=$(inside readlink -f "$folder")
        mount --bind "$root$folder" "$confined$folder"
        mount -o remount,bind,exec "$confined$folder"
    done
    for folder in proc dev tmp run; do mount --rbind "$root/$folder" "$confined/$folder"; done
}

# --- A server ---

server=
socket=/tmp/rollcall-test.sock
cli() { inside redis-cli -s "$socket" "$@"; }
start() {
    rm -f "$root$socket"
    # The options `daemonize`, `port` and the folders in the configuration file are for a service. This server is a
    # child process without a port.
    chroot --userspec=redis:redis "$confined" /usr/bin/redis-server /etc/redis/redis.conf --daemonize no --port 0 \
        --unixsocket "$socket" --dir /tmp --logfile '' --pidfile '' --save '' "$@" >"$root/tmp/log" 2>&1 &
    server=$!
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        [[ $(cli PING 2>/dev/null) == PONG ]] && return
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.05
    done
    fail "the server does not answer: $(tail -n 5 "$root/tmp/log")"
}
stop() {
    [[ -z $server ]] || { kill "$server" 2>/dev/null; wait "$server" || true; }
    server=
}
trap stop EXIT
started() { start "$@" || fail "the server did not start: $(tail -n 5 "$root/tmp/log")"; }
rejected() {
    local why=$1
    shift
    ! start "$@" || fail "the server started, and should not have: $why"
    wait "$server" || true
    server=
}

use_it() {
    expect 1 cli BF.ADD seen token-1
    expect 0 cli BF.ADD seen token-1
    expect 2 cli LC.ADD visitors ann ben ann
    expect 2 cli LC.COUNT visitors
    cli INFO rollcall | tr -d '\r' | grep -qx "rollcall_version:$1" ||
        fail "the server does not say that it has version $1"
}

# Runs the tool, and checks its man page and completions.
use_tool() {
    step "the tool, its page and completions"
    inside "$1/rollcall" --version | grep -qF "$2" || fail "rollcall --version does not say $2"
    inside man --where rollcall >/dev/null || fail "man does not find rollcall's page"
    inside man --warnings rollcall 2>&1 >/dev/null | sed 's/^/man: /' | { ! grep . >&2; } ||
        fail "rollcall's page has errors"
    inside bash -n /usr/share/bash-completion/completions/rollcall
}

# Prints the shell commands of the document $1 between the heading $2 and the next: the block number $3, or all
# blocks.
commands() {
    awk -v heading="$2" -v wanted="${3:-0}" '
        /^##* / { within = index($0, heading) || (within && !/^##/) }
        /^```$/ { inside = 0 }
        within && inside && (!wanted || block == wanted) { print }
        within && /^```sh$/ { inside = 1; block++ }' "$1"
}
# Runs commands in the folder /tmp/$1 of the temporary root. There is no systemd, so the test itself restarts the
# server.
obey() {
    [[ -s $root/tmp/commands ]] || fail "the document has no such commands"
    inside sh -e -c "systemctl() { :; }; cd /tmp/$1 && . /tmp/commands" >"$root/tmp/commands.log" 2>&1 ||
        fail "the document's commands failed: $(cat "$root/tmp/commands" "$root/tmp/commands.log")"
}

module=/usr/lib/redis/modules/librollcall.so
line="loadmodule $module"
conf=$root/etc/redis/redis.conf

install_deb() {
    version=$(dpkg-deb --field "$package" Version)
    version=${version%-*}
    document=$3
    ! inside dpkg-query --status rollcall >/dev/null 2>&1 ||
        fail "rollcall is installed on this machine: remove it first"
    cp "$package" "$root/tmp/"
    step "installing ${package##*/} as ${document##*/} says"
    commands "$document" "Debian and Ubuntu" 1 >"$root/tmp/commands"
    obey .
    expect "install ok installed" inside dpkg-query --show --showformat '${Status}' rollcall
    expect "" inside dpkg --verify rollcall
    expect "" inside find "$module" ! -user root
    grep -q "^ *$line$" "$root/tmp/commands.log" ||
        fail "installing does not say how to load the module: $(cat "$root/tmp/commands.log")"
}

# Runs the commands of INSTALL.md.
install_tarball() {
    version=$3
    local folder
    folder=$(basename "$package" .tar.gz)
    tar -xzf "$package" -C "$root/tmp" --no-same-owner
    step "installing ${package##*/} as its INSTALL.md says"
    commands "$root/tmp/$folder/INSTALL.md" Installing >"$root/tmp/commands"
    obey "$folder"
}

"install_$kind" "$@"
confine

step "a server without the line knows nothing of it"
sed -i "s|^$line|# $line|" "$conf"
started
cli BF.ADD seen token-1 2>&1 | grep -q 'unknown command' || fail "BF.ADD is known without the line"
stop
sed -i "s|^# $line|$line|" "$conf"

step "a server with the line, under ExecPaths=${exec_paths[*]}"
started
use_it "$version"
stop

step "the same module elsewhere is rejected"
install -D -m 755 "$root$module" "$root/opt/librollcall.so"
sed -i "s|^$line|# $line|" "$conf"
rejected "/opt is not in ExecPaths" --loadmodule /opt/librollcall.so
grep -q 'failed to map segment' "$root/tmp/log" || fail "rejected, but not for ExecPaths: $(tail -n 3 "$root/tmp/log")"
sed -i "s|^# $line|$line|" "$conf"
rm "$root/opt/librollcall.so"

if [[ $kind == deb ]]; then
    use_tool /usr/bin "$version"

    step "removing"
    inside dpkg --remove rollcall >"$root/tmp/dpkg.log" 2>&1 || fail "dpkg: $(cat "$root/tmp/dpkg.log")"
    grep -q 'redis.conf still names the module' "$root/tmp/dpkg.log" ||
        fail "removing did not warn of the line that is left: $(cat "$root/tmp/dpkg.log")"
    rejected "the module is gone, and the line is there"
    grep -q 'Can.t load module' "$root/tmp/log" || fail "rejected, but not for the module: $(tail -n 3 "$root/tmp/log")"
    sed -i "\|^$line|d" "$conf"

    step "installing again; then purging as ${document##*/} says"
    commands "$document" "Debian and Ubuntu" 1 >"$root/tmp/commands"
    obey .
    # The server tests (every_server/install.rs) delete a server's keys before removal. This server has none.
    { commands "$document" "## Removing" 3 && commands "$document" "## Removing" 4; } >"$root/tmp/commands"
    obey .
    ! grep -q 'still names' "$root/tmp/commands.log" ||
        fail "a warning of a line that is not there: $(cat "$root/tmp/commands.log")"
    ! grep -q rollcall "$conf" || fail "redis.conf still names rollcall"
    started
    stop
    ! inside dpkg-query --status rollcall >/dev/null 2>&1 || fail "dpkg still knows the package"
    # Nothing differs from before the installation, except dpkg's records and the server's log and configuration.
    left=$(cd "$ROLLCALL_CHANGES" && find . \( -path ./var/lib/dpkg -o -path ./var/cache/man \
        -o -path ./var/log/dpkg.log -o -path ./var/log/redis -o -path ./etc/redis/redis.conf \) -prune \
        -o ! -type d -print)
    [[ -z $left ]] || fail "left behind: $left"
    [[ ! -e $root/usr/lib/redis && ! -e $root/usr/share/doc/rollcall ]] || fail "empty folders are left behind"
else
    use_tool /usr/local/bin "$version"
fi
step "$kind: passed"
