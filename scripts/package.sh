#!/usr/bin/env bash
# Makes the packages for one processor. `make package` installs the tools and runs it.
#
#   scripts/package.sh build      compile the module and the tool, split off symbols, check needed libraries
#   scripts/package.sh pack       make all packages of a release, in target/package/
#   scripts/package.sh bill FOLDER FILE    write the bill of materials of the crate in this folder
#   scripts/package.sh check FILE          fail if FILE needs a newer glibc, or another library
#   scripts/package.sh version    print the version; likewise `target` (Rust's name), `label` (of files),
#                                 `packages` (crates), `folder` (where they go)
#
# By default, packages are for this machine's processor and for glibc 2.28 and later. ARCH=arm64 makes packages for
# AArch64 on x86-64, in target/package-arm64/. LIBC=musl makes them for musl, in target/package-musl/, without a
# Debian package. The same commit gives the same bytes: all files have the time of the last commit, and contain no
# paths of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -n ${ROLLCALL_ARM64:-} ]] || export CARGO_TARGET_DIR=$PWD/target
tools=$PWD/target/tools
glibc=2.28
libc=${LIBC:-gnu}
out=target/package
[[ $libc == gnu ]] || out+=-$libc
# The Debian package is made of this folder (Cargo.toml names it).
parts=target/package-parts

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
step() { printf 'package: %s\n' "$*"; }

case "${ARCH:-$(uname -m)}" in
    amd64 | x86_64) machine=x86_64 debian=amd64 ;;
    arm64 | aarch64) machine=aarch64 debian=arm64 ;;
    *) fail "packages are made for amd64 and arm64 only, not for ${ARCH:-$(uname -m)}" ;;
esac
emulator=()
if [[ $machine != "$(uname -m)" ]]; then
    [[ $debian == arm64 ]] || fail "packages for amd64 are made on x86-64 only"
    out+=-arm64
    case "${1:-}" in
        build | pack)
            # For AArch64, runs the script again with AArch64's compiler and binutils, and with qemu to run the tool.
            [[ -n ${ROLLCALL_ARM64:-} ]] || exec scripts/arm64.sh run "$0" "$@"
            read -ra emulator <<<"$CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER"
            ;;
    esac
fi
case "$libc" in
    gnu) zig_target=$machine-unknown-linux-gnu.$glibc module_flags=() ;;
    # The module uses the server's C library. The tool contains musl, which is Rust's default.
    musl) zig_target=$machine-unknown-linux-musl module_flags=(-C target-feature=-crt-static) ;;
    *) fail "LIBC=$libc is neither gnu nor musl" ;;
esac
target=$machine-unknown-linux-$libc

version=$(sed -nE '/^\[workspace.package\]/,/^\[/s/^version = "(.*)"/\1/p' Cargo.toml)
revision=$(sed -nE '1s/^rollcall \((.*)\) .*/\1/p' packaging/debian/changelog)
label=rollcall-$version-$machine-linux-$libc

# The crates of the module and the tool, and the names of their compiled files.
packages=(rollcall rollcall-cli)
binaries=(librollcall.so rollcall)

bill_of() { echo "$out/$label-$1.cdx.json"; }

# The modification time of all files made here.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null)} ||
    fail "the time of the last commit is not known: run this in a checkout, or set SOURCE_DATE_EPOCH"
export SOURCE_DATE_EPOCH
# Debug symbols, which are split off later.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only

# Compiles package $1, with further flags of rustc.
compile() {
    local crates=${CARGO_HOME:-$HOME/.cargo}/registry/src
    local flags=("--remap-path-prefix=$PWD=/rollcall" "--remap-path-prefix=$crates=/crates" "${@:2}")
    step "compiling $1 $version for $zig_target (some minutes)"
    # Runs in another folder than the root, for two reasons. Zig writes relative paths of files below the current
    # folder. The generator of the bindings runs elsewhere, and would not find the C library's headers by them.
    (cd packaging && PATH=$tools/zig/bin:$PATH PYTHONPATH=$tools/zig RUSTFLAGS="${flags[*]}" \
        cargo zigbuild --release --locked --target "$zig_target" --package "$1") ||
        fail "compiling failed: the message is above. Crates that are missing need a network once: cargo fetch --locked"
}

# Checks whether the file $1 runs with every C library that it is made for. auditwheel and similar tools look only
# into wheels.
check() {
    local foreign newest allowed='^(ld-linux-.*|lib(c|m|dl|rt|pthread))\.so\.[0-9]+$'
    [[ $libc == gnu ]] || allowed='^libc(\.musl-.*)?\.so(\.1)?$'
    foreign=$(objdump --private-headers "$1" | awk '$1 == "NEEDED" { print $2 }' | { grep -vE "$allowed" || true; })
    [[ -z $foreign ]] || fail "$1 needs $foreign, which is no part of the C library"
    # The likely reason for a failure is a crate that calls a newer function.
    newest=$(objdump --dynamic-syms "$1" | grep -o 'GLIBC_[0-9.]*' | sort --version-sort | tail -n 1 || true)
    if [[ $libc == musl ]]; then
        [[ -z $newest ]] || fail "$1 needs glibc, and is for musl"
    else
        [[ -n $newest ]] &&
            [[ $(printf '%s\n' "$newest" "GLIBC_$glibc" | sort --version-sort | tail -n 1) == "GLIBC_$glibc" ]] ||
            fail "$1 needs ${newest:-no glibc}, and may need at most GLIBC_$glibc"
    fi
}

build() {
    [[ -x $tools/zig/bin/cargo-zigbuild ]] || fail "cargo-zigbuild is missing: run  scripts/tools.sh zig"
    compile rollcall "${module_flags[@]}"
    compile rollcall-cli
    mkdir -p "$out"
    local file
    for file in "${binaries[@]}"; do
        step "splitting off the symbols of $file"
        rm -f "$out/$file" "$out/$file.debug"
        objcopy --only-keep-debug --compress-debug-sections=zlib "$CARGO_TARGET_DIR/$target/release/$file" \
            "$out/$file.debug"
        chmod 644 "$out/$file.debug"
        (cd "$out" && objcopy --strip-all --remove-section=.comment --add-gnu-debuglink="$file.debug" \
            "$CARGO_TARGET_DIR/$target/release/$file" "$file")
        chmod 755 "$out/$file"
        check "$out/$file"
    done
}

# Runs the tool to write its own man pages and completions.
tool_documents() {
    mkdir -p "$parts/man" "$parts/completions"
    "${emulator[@]}" "$out/rollcall" man "$parts/man"
    "${emulator[@]}" "$out/rollcall" completions bash >"$parts/completions/rollcall.bash"
    "${emulator[@]}" "$out/rollcall" completions zsh >"$parts/completions/_rollcall"
    "${emulator[@]}" "$out/rollcall" completions fish >"$parts/completions/rollcall.fish"
}

# Writes the bill of materials (CycloneDX) of the crate in the folder $1 to the file $2. Its time is
# SOURCE_DATE_EPOCH.
bill() {
    # cargo-cyclonedx writes a file next to each Cargo.toml of the workspace. All files but this one are removed.
    "$tools/cyclonedx/bin/cargo-cyclonedx" cyclonedx --quiet --format json --spec-version 1.5 --target "$target" \
        --override-filename .rollcall-bill ||
        fail "cargo-cyclonedx failed: its message is above. Where it is missing:  scripts/tools.sh cyclonedx"
    sed "s|$PWD|/rollcall|g" "$1/.rollcall-bill.json" >"$2"
    find . -path ./target -prune -o -name .rollcall-bill.json -exec rm {} +
}

# Copies the documents to which findings refer into the folder $1. $2 is the folder of the files for monitoring.
reference() {
    mkdir -p "$1"
    scripts/reference.py write "$1" "$2"
    find "$1/docs" "$1/SECURITY.md" -type f -exec chmod 644 {} +
}

# Packs a folder into an archive: sorted, owned by root, with the commit's time.
archive() {
    tar --create --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$parts" "$1" | gzip -9n >"$out/$1.tar.gz"
}

put() { install -D --mode="$1" "$2" "$3"; }

tarball() {
    local folder=$parts/$label file
    for file in LICENSE-MIT LICENSE-APACHE CHANGELOG.md packaging/INSTALL.md "$parts/THIRD-PARTY"; do
        put 644 "$file" "$folder/${file##*/}"
    done
    for file in "${packages[@]}"; do put 644 "$(bill_of "$file")" "$folder/sbom/$file.cdx.json"; done
    put 755 "$out/librollcall.so" "$folder/librollcall.so"
    put 755 "$out/rollcall" "$folder/bin/rollcall"
    for file in packaging/monitoring/*; do put 644 "$file" "$folder/monitoring/${file##*/}"; done
    reference "$folder" monitoring
    for file in "$parts"/man/*; do put 644 "$file" "$folder/man/man1/${file##*/}"; done
    for file in "$parts"/completions/*; do put 644 "$file" "$folder/completions/${file##*/}"; done
    archive "$label"
    folder=$parts/$label-debug
    for file in "${binaries[@]}"; do put 644 "$out/$file.debug" "$folder/$file.debug"; done
    archive "$label-debug"
}

# Makes the Debian package. Cargo.toml ([package.metadata.deb]) says where files go.
deb() {
    [[ ${revision%-*} == "$version" ]] ||
        fail "packaging/debian/changelog is at $revision, Cargo.toml at $version: give the changelog an entry"
    gzip -9nk "$parts/THIRD-PARTY"
    reference "$parts/reference" examples/monitoring
    cp "${binaries[@]/#/$out/}" "$parts/"
    # The binaries are stripped already, of more than cargo-deb would strip.
    "$tools/deb/bin/cargo-deb" --quiet --no-build --no-strip --target "$target" --deb-version "$revision" \
        --output "$out/rollcall_${revision}_$debian.deb" >/dev/null ||
        fail "cargo-deb failed: its message is above. Where it is missing:  scripts/tools.sh deb"
}

pack() {
    local file
    for file in "${binaries[@]}"; do [[ -e $out/$file ]] || fail "$out/$file is missing: run  make package"; done
    umask 022
    rm -rf "$parts"
    mkdir -p "$parts"
    find "$out" -maxdepth 1 -type f \( -name 'rollcall[-_]*' -o -name SHA256SUMS \) -delete
    step "licences of what is compiled in"
    scripts/third_party.py "$target" "${packages[@]}" >"$parts/THIRD-PARTY"
    tool_documents
    step "bills of materials"
    bill . "$(bill_of rollcall)"
    bill cli "$(bill_of rollcall-cli)"
    step "$label.tar.gz"
    tarball
    if [[ $libc == gnu ]]; then
        step "rollcall_${revision}_$debian.deb"
        deb
    fi
    (cd "$out" && LC_ALL=C && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort |
        xargs -d '\n' sha256sum >SHA256SUMS)
    rm -rf "$parts"
    step "done: $out has"
    (cd "$out" && LC_ALL=C && for file in *; do printf '  %10d  %s\n' "$(stat -c %s "$file")" "$file"; done)
}

case "${1:-}" in
    build) build ;;
    pack) pack ;;
    bill) bill "${@:2}" ;;
    check) check "$2" ;;
    version) echo "$version" ;;
    target) echo "$target" ;;
    label) echo "$label" ;;
    folder) echo "$out" ;;
    packages) printf '%s\n' "${packages[@]}" ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
