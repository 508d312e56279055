#!/usr/bin/env bash
# Makes the packages of this machine's processor: what `make package` runs, once its tools are there.
#
#   scripts/package.sh build      compile the module and the tool, split off their symbols, check what they need
#   scripts/package.sh pack       from these, all that a release has, in target/package/
#   scripts/package.sh version    print the version; likewise `target` (Rust's name), `label` (of files), `packages` (crates)
#
# LIBC=musl makes them for musl, without a Debian package; the default is glibc 2.28 and later. The time in all files is
# that of the last commit, and paths of this machine are left out: the same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=$PWD/target
out=target/package
parts=target/package-parts
tools=$PWD/target/tools
glibc=2.28
libc=${LIBC:-gnu}

fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
step() { printf 'package: %s\n' "$*"; }

case "$(uname -m)" in
    x86_64) machine=x86_64 debian=amd64 ;;
    aarch64) machine=aarch64 debian=arm64 ;;
    *) fail "packages are made on x86-64 and AArch64 only, and this is $(uname -m)" ;;
esac
case "$libc" in
    gnu) zig_target=$machine-unknown-linux-gnu.$glibc module_flags=() needs=(--glibc "$glibc") ;;
    # The module uses the server's own C library; the tool has musl inside, as is the default.
    musl) zig_target=$machine-unknown-linux-musl module_flags=(-C target-feature=-crt-static) needs=() ;;
    *) fail "LIBC=$libc is neither gnu nor musl" ;;
esac
target=$machine-unknown-linux-$libc

version=$(sed -nE '/^\[workspace.package\]/,/^\[/s/^version = "(.*)"/\1/p' Cargo.toml)
revision=$(sed -nE '1s/^rollcall \((.*)\) .*/\1/p' packaging/debian/changelog)
label=rollcall-$version-$machine-linux-$libc

# The module and the tool: their crates, and what these are compiled to.
packages=(rollcall rollcall-cli)
binaries=(librollcall.so rollcall)

bill_of() { echo "$out/$label-$1.cdx.json"; }

# The time that everything made here bears.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null)} ||
    fail "the time of the last commit is not known: run this in a checkout, or set SOURCE_DATE_EPOCH"
export SOURCE_DATE_EPOCH

# Compiles package $1, with further flags of rustc.
compile() {
    local flags=("--remap-path-prefix=$PWD=/rollcall" "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/crates" "${@:2}")
    step "compiling $1 $version for $zig_target (some minutes)"
    # From another folder than the root: Zig names what lies below the current one by relative paths, and the bindings'
    # generator runs elsewhere and would not find the C library's headers.
    (cd packaging && PATH=$tools/zig/bin:$PATH PYTHONPATH=$tools/zig RUSTFLAGS="${flags[*]}" \
        cargo zigbuild --release --locked --target "$zig_target" --package "$1") ||
        fail "compiling failed: the compiler's message is above. A crate that could not be fetched needs a network once: cargo fetch --locked"
}

build() {
    [[ -x $tools/zig/bin/cargo-zigbuild ]] || fail "cargo-zigbuild is missing: run  scripts/tools.sh zig"
    rustc --print target-libdir --target "$target" | xargs test -d ||
        fail "Rust's library for $target is missing: run  rustup target add $target"
    compile rollcall "${module_flags[@]}"
    compile rollcall-cli
    mkdir -p "$out"
    local file
    for file in "${binaries[@]}"; do
        step "splitting off the symbols of $file"
        rm -f "$out/$file" "$out/$file.debug"
        objcopy --only-keep-debug --compress-debug-sections=zlib "target/$target/release/$file" "$out/$file.debug"
        chmod 644 "$out/$file.debug"
        (cd "$out" && objcopy --strip-all --remove-section=.comment --add-gnu-debuglink="$file.debug" "../$target/release/$file" "$file")
        chmod 755 "$out/$file"
        scripts/check_binary.py "$out/$file" "${needs[@]}" ||
            fail "$file would not run everywhere: see above. A crate that calls something newer is the likely reason"
    done
}

# The tool's man pages and completions, written by the tool itself.
tool_documents() {
    mkdir -p "$parts/man" "$parts/completions"
    "$out/rollcall" man "$parts/man"
    "$out/rollcall" completions bash >"$parts/completions/rollcall.bash"
    "$out/rollcall" completions zsh >"$parts/completions/_rollcall"
    "$out/rollcall" completions fish >"$parts/completions/rollcall.fish"
}

# A bill of materials (CycloneDX) of each package, with the time and serial number of the commit.
bills() {
    local cyclonedx=$tools/cyclonedx/bin/cargo-cyclonedx package written
    [[ -x $cyclonedx ]] || fail "cargo-cyclonedx is missing: run  scripts/tools.sh cyclonedx"
    # It writes beside each Cargo.toml of the workspace, and every one: all but ours are removed.
    "$cyclonedx" cyclonedx --quiet --format json --spec-version 1.5 --target "$target" --override-filename .rollcall-bill ||
        fail "cargo-cyclonedx failed: its message is above"
    for package in "${packages[@]}"; do
        written=.rollcall-bill.json
        [[ $package == rollcall ]] || written=cli/.rollcall-bill.json
        python3 - "$written" "$(bill_of "$package")" "$PWD" <<'PYTHON'
import json, os, sys, uuid
from datetime import datetime, timezone
source, target, root = sys.argv[1:]
# Paths of this machine are replaced; whatever is random or of today is derived from the commit.
bill = json.loads(open(source).read().replace(root, "/rollcall"))
when = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
bill["metadata"]["timestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
bill.pop("serialNumber", None)
bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True))}"
with open(target, "w") as file:
    json.dump(bill, file, indent=1, sort_keys=True)
    file.write("\n")
PYTHON
    done
    find . -path ./target -prune -o -name .rollcall-bill.json -exec rm {} +
}

# The line that loads the module, and the options as the repository's redis.conf explains them.
snippet() {
    cat packaging/rollcall.conf
    sed -n '/^# --- The module ---/,$p' redis.conf
}

# A folder as an archive: sorted, owned by root, of the commit's time.
archive() {
    tar --create --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$parts" "$1" | gzip -9n >"$out/$1.tar.gz"
}

put() { install -D --mode="$1" "$2" "$3"; }
put_gzipped() { mkdir -p "$(dirname "$2")" && gzip -9nc "$1" >"$2" && chmod 644 "$2"; }

tarball() {
    local folder=$parts/$label file
    for file in LICENSE-MIT LICENSE-APACHE CHANGELOG.md packaging/INSTALL.md "$parts/THIRD-PARTY" "$parts/rollcall.conf"; do
        put 644 "$file" "$folder/${file##*/}"
    done
    for file in "${packages[@]}"; do put 644 "$(bill_of "$file")" "$folder/sbom/$file.cdx.json"; done
    put 755 "$out/librollcall.so" "$folder/librollcall.so"
    put 755 "$out/rollcall" "$folder/bin/rollcall"
    for file in packaging/monitoring/*; do put 644 "$file" "$folder/monitoring/${file##*/}"; done
    for file in "$parts"/man/*; do put 644 "$file" "$folder/man/man1/${file##*/}"; done
    for file in "$parts"/completions/*; do put 644 "$file" "$folder/completions/${file##*/}"; done
    archive "$label"
    folder=$parts/$label-debug
    for file in "${binaries[@]}"; do put 644 "$out/$file.debug" "$folder/$file.debug"; done
    archive "$label-debug"
}

# dpkg-deb alone: every Debian has it, the package is a dozen files, and cargo-deb would build with another linker.
deb() {
    [[ ${revision%-*} == "$version" ]] ||
        fail "packaging/debian/changelog is at $revision, Cargo.toml at $version: give the changelog an entry"
    local folder=$parts/deb file
    local doc=$folder/usr/share/doc/rollcall
    put 644 "$out/librollcall.so" "$folder/usr/lib/redis/modules/librollcall.so"
    put 644 "$parts/rollcall.conf" "$folder/etc/redis/rollcall.conf"
    put_gzipped packaging/debian/changelog "$doc/changelog.Debian.gz"
    put_gzipped CHANGELOG.md "$doc/changelog.gz"
    put_gzipped "$parts/THIRD-PARTY" "$doc/THIRD-PARTY.gz"
    [[ ! -s packaging/debian/overrides ]] || put 644 packaging/debian/overrides "$folder/usr/share/lintian/overrides/rollcall"
    # DEP-5 wants the text indented, and a dot in each empty line.
    sed '1,2d; s/^$/./; s/^/ /' LICENSE-MIT | sed -e '/^@MIT@$/{' -e 'r /dev/stdin' -e 'd' -e '}' packaging/debian/copyright >"$doc/copyright"
    for file in packaging/monitoring/*; do put 644 "$file" "$doc/examples/monitoring/${file##*/}"; done
    put 755 "$out/rollcall" "$folder/usr/bin/rollcall"
    for file in "$parts"/man/*; do put_gzipped "$file" "$folder/usr/share/man/man1/${file##*/}.gz"; done
    put 644 "$parts/completions/rollcall.bash" "$folder/usr/share/bash-completion/completions/rollcall"
    put 644 "$parts/completions/_rollcall" "$folder/usr/share/zsh/vendor-completions/_rollcall"
    put 644 "$parts/completions/rollcall.fish" "$folder/usr/share/fish/vendor_completions.d/rollcall.fish"
    # A server loads a module only if it may be executed.
    chmod 755 "$folder/usr/lib/redis/modules/librollcall.so"
    local size
    size=$(du --apparent-size -sk "$folder" | cut -f1)
    mkdir "$folder/DEBIAN"
    (cd "$folder" && find . -type f ! -path './DEBIAN/*' -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' md5sum >DEBIAN/md5sums)
    sed "s/@VERSION@/$revision/; s/@ARCHITECTURE@/$debian/; s/@SIZE@/$size/" packaging/debian/control >"$folder/DEBIAN/control"
    echo /etc/redis/rollcall.conf >"$folder/DEBIAN/conffiles"
    put 755 packaging/debian/prerm "$folder/DEBIAN/prerm"
    find "$folder" -type d -exec chmod 755 {} +
    chmod 644 "$doc/copyright" "$folder/DEBIAN/"{control,conffiles,md5sums}
    find "$folder" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$folder" "$out/rollcall_${revision}_$debian.deb" >/dev/null
}

pack() {
    local file
    for file in "${binaries[@]}"; do [[ -e $out/$file ]] || fail "$out/$file is missing: run  make package"; done
    umask 022
    rm -rf "$parts"
    mkdir -p "$parts"
    find "$out" -maxdepth 1 -type f \( -name 'rollcall[-_]*' -o -name SHA256SUMS \) -delete
    step "licences of what is compiled in"
    scripts/linked_crates.py licences "$target" "${packages[@]}" >"$parts/THIRD-PARTY"
    snippet >"$parts/rollcall.conf"
    tool_documents
    step "bills of materials"
    bills
    step "$label.tar.gz"
    tarball
    if [[ $libc == gnu ]]; then
        step "rollcall_${revision}_$debian.deb"
        deb
    fi
    (cd "$out" && LC_ALL=C && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS)
    rm -rf "$parts"
    step "done: $out has"
    (cd "$out" && LC_ALL=C && for file in *; do printf '  %10d  %s\n' "$(stat -c %s "$file")" "$file"; done)
}

case "${1:-}" in
    build) build ;;
    pack) pack ;;
    version) echo "$version" ;;
    target) echo "$target" ;;
    label) echo "$label" ;;
    packages) printf '%s\n' "${packages[@]}" ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
