#!/usr/bin/env bash
# Builds and tests for AArch64 on an x86-64 Debian 12: qemu runs the programs. Nothing is installed on the system.
# Only images need root.
#
#   scripts/arm64.sh fetch         unpack Debian's packages into target/arm64/debian/ (100 MB once)
#   scripts/arm64.sh run COMMAND   run a command in the environment that compiles for AArch64, into target/arm64/
#   scripts/arm64.sh test          test the core, then the module on a server, both under qemu
#   scripts/arm64.sh installed FOLDER    test the module and the tool in FOLDER, an unpacked Debian package
#   scripts/arm64.sh python FOLDER FILE  run FILE by Debian's Python, with an unpacked wheel in FOLDER
#   scripts/arm64.sh emulated COMMAND    run a command while the kernel starts programs for AArch64 under qemu
#
# zig is the linker. First run `ARCH=arm64 scripts/setup.sh build server wheels package` and `scripts/tools.sh zig`.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

root=$PWD/target
here=$root/arm64
debian=$here/debian
target=aarch64-unknown-linux-gnu
qemu=("$debian/usr/bin/qemu-aarch64-static" -L "$debian")

fail() { printf 'arm64: %s\n' "$*" >&2; exit 1; }
step() { printf 'arm64: %s\n' "$*"; }

# Packages for AArch64: a server with its libraries, libfaketime, and Python.
packages=(redis-server redis-tools libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblua5.1-0 liblzf1 libssl3
    libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblz4-1 liblzma5 libzstd1 lua-cjson lua-bitop libfaketime
    python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libexpat1 zlib1g)
packages=("${packages[@]/%/:arm64}" qemu-user-static binutils-aarch64-linux-gnu)

# Runs apt with lists in a folder of its own, so that the system need not know a second architecture.
apt() {
    apt-get --quiet=2 -o APT::Architectures=amd64,arm64 -o Dir::State::Lists="$here/apt/lists" \
        -o Dir::Cache="$here/apt/cache" -o Dir::State::Status="$here/apt/status" -o APT::Sandbox::User= "$@"
}

fetch() {
    [[ $(uname -m) == x86_64 ]] || fail "this is $(uname -m): on AArch64 \`make test\` needs no emulation"
    command -v apt-get >/dev/null || fail "apt-get is missing: this needs Debian 12"
    [[ $(cat "$debian/packages" 2>/dev/null) != "${packages[*]}" ]] || return 0
    step "fetching some 30 packages of Debian, 100 MB"
    rm -rf "$debian" "$here/apt" "$here/debs" "$here/new"
    mkdir -p "$here"/apt/{lists,cache/archives}/partial "$here/debs" "$here/new"
    touch "$here/apt/status"
    apt update || fail "apt-get failed: its message is above"
    (cd "$here/debs" && apt download "${packages[@]}") || fail "apt-get failed: its message is above"
    for file in "$here"/debs/*.deb; do dpkg-deb --extract "$file" "$here/new"; done
    find "$here/new/usr/bin" -name 'qemu-*' ! -name qemu-aarch64-static -delete
    rm -rf "$here/debs" "$here/apt"
    echo "${packages[*]}" >"$here/new/packages"
    mv "$here/new" "$debian"
}

# Writes a shell script $1 to target/arm64/ that runs the command $2 with its arguments.
script() {
    printf '#!/bin/sh\n%s "$@"\n' "$2" >"$here/$1"
    chmod 755 "$here/$1"
}

environment() {
    [[ -e $debian/packages ]] || fail "Debian's packages are missing: run  scripts/arm64.sh fetch"
    [[ -x $root/tools/zig/bin/cargo-zigbuild ]] || fail "cargo-zigbuild is missing: run  scripts/tools.sh zig"
    local libraries="LD_LIBRARY_PATH='$debian/usr/lib/x86_64-linux-gnu' exec" name
    mkdir -p "$here/bin"
    for name in objcopy objdump nm addr2line strip; do
        script "bin/$name" "$libraries '$debian/usr/bin/aarch64-linux-gnu-$name'"
    done
    script redis-server "exec ${qemu[*]} '$debian/usr/bin/redis-server'"
    script cc "exec '$root/tools/zig/ziglang/zig' cc -target aarch64-linux-gnu.2.28"
    script musl-cc "exec '$root/tools/zig/ziglang/zig' cc -target aarch64-linux-musl -dynamic"
    script musl-ar "exec '$root/tools/zig/ziglang/zig' ar"
    export ROLLCALL_ARM64=1 ARCH=arm64 CARGO_TARGET_DIR=$here PATH=$here/bin:$root/tools/zig/bin:$PATH \
        PYTHONPATH=$root/tools/zig
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="${qemu[*]}"
}

server_version() { "$here/redis-server" --version | cut -d ' ' -f 1-3; }

tests() {
    local started=$SECONDS
    # One test is left out: it starts its own program again, which the kernel cannot do with a program for AArch64.
    step "the core, under qemu: unit tests, stored format, golden files, fuzz corpus"
    (environment && cargo-zigbuild test --config .cargo/optimised.toml --locked --no-fail-fast --target "$target.2.28" \
        --package rollcall-core --package rollcall-fuzz --lib --tests -- \
        --skip an_allocation_that_fails_is_an_error_or_small)
    step "the core passed after $(((SECONDS - started) / 60)) min; now the module, in $(server_version)"
    # The tests run on this machine's processor, and start servers for AArch64. Tests with RedisBloom are skipped,
    # because it exists only for x86-64. One test is left out: it measures the memory of the server's process, which
    # is qemu here.
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="env CC=$here/cc" ROLLCALL_PATIENCE=4 \
        ROLLCALL_SERVER=$here/redis-server ROLLCALL_MODULE=$root/package-arm64/librollcall.so \
        ROLLCALL_OTHER_SERVER=$(command -v redis-server) ROLLCALL_OTHER_MODULE=$root/release/librollcall.so \
        ROLLCALL_FAKETIME=$debian/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1 \
        cargo test --workspace --locked --no-fail-fast --test server -- --skip pages_of_zeros_are_not_touched \
        every_server::commands every_server::persistence every_server::replication processors
    step "all passed after $(((SECONDS - started) / 60)) min"
}

# Starts a server with the module of the unpacked package $1, and queries it by the package's tool.
installed() {
    environment
    local socket=$here/installed.sock cli=(redis-cli -s "$here/installed.sock") tries
    rm -f "$socket"
    "$here/redis-server" --loadmodule "$1/usr/lib/redis/modules/librollcall.so" --port 0 --unixsocket "$socket" \
        --save '' --dir "$here" >"$here/installed.log" 2>&1 &
    trap "kill $! 2>/dev/null || true" EXIT
    for ((tries = 0; tries < 100; tries++)); do [[ $("${cli[@]}" PING 2>/dev/null) == PONG ]] && break; sleep 0.1; done
    [[ $("${cli[@]}" BF.ADD seen token-1) == 1 && $("${cli[@]}" LC.ADD visitors ann ben) == 2 ]] ||
        fail "the packaged module does not answer: $(tail -n 5 "$here/installed.log")"
    "${qemu[@]}" "$1/usr/bin/rollcall" top --once --url "redis+unix://$socket" | grep -q visitors ||
        fail "the packaged tool does not read the server"
    step "$("${qemu[@]}" "$1/usr/bin/rollcall" --version): module and tool of the package work in $(server_version)"
}

binfmt=/proc/sys/fs/binfmt_misc
undo=()
emulated() {
    # F: the kernel keeps qemu open, so that containers need not contain it. P: programs such as busybox get the name
    # by which they were called.
    if ! grep -ls '^magic .*0200b700$' "$binfmt"/* | xargs -r grep -qs '^flags:.*F'; then
        ((EUID == 0)) || fail "images for AArch64 need binfmt_misc: run this as root, or install qemu-user-static"
        trap 'for command in "${undo[@]}"; do eval "$command"; done' EXIT
        if [[ ! -e $binfmt/register ]]; then
            mount -t binfmt_misc none "$binfmt" || fail "this machine has no binfmt_misc"
            undo=("umount $binfmt")
        fi
        # The first bytes of an ELF file for AArch64, a program or a library, and the mask of the bytes that count.
        magic="\x7fELF\x02\x01\x01$(bytes 9 00)\x02\x00\xb7\x00"
        mask="$(bytes 7 ff)\x00$(bytes 8 ff)\xfe$(bytes 3 ff)"
        echo ":rollcall:M::$magic:$mask:${qemu[0]}:PF" >"$binfmt/register" ||
            fail "the kernel does not take qemu for AArch64"
        undo=("echo -1 >$binfmt/rollcall" "${undo[@]}")
        step "until this ends, the kernel starts programs for AArch64 by qemu ($binfmt/rollcall)"
    fi
    "$@"
}
bytes() { printf "\\\\x$2%.0s" $(seq "$1"); }

case "${1:-}" in
    fetch) fetch ;;
    run) environment && exec "${@:2}" ;;
    test) tests ;;
    installed) installed "$2" ;;
    python) environment && cd "$2" && PYTHONPATH=$2 "${qemu[@]}" "$debian/usr/bin/python3.11" "${@:3}" ;;
    emulated) emulated "${@:2}" ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
