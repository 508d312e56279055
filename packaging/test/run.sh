#!/usr/bin/env bash
# Checks the results of `make package` in target/package/: checksums, symbols, contents, bills of materials, and that
# packing again gives the same bytes. Then lintian checks the Debian package, and both packages are installed, used
# and removed. LIBC=musl has no Debian package, and ends after packing again.
#
# `make test-package` runs it, and also the server tests on the packaged module. ARCH=arm64 runs the programs of the
# unpacked Debian package under qemu.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'test-package: %s\n' "$*" >&2; exit 1; }
step() { printf '== %s\n' "$*"; }

if [[ ${ARCH:-} == arm64 && $(uname -m) == x86_64 && -z ${ROLLCALL_ARM64:-} ]]; then exec scripts/arm64.sh run "$0"; fi
version=$(scripts/package.sh version)
target=$(scripts/package.sh target)
label=$(scripts/package.sh label)
mapfile -t packages < <(scripts/package.sh packages)
out=$PWD/$(scripts/package.sh folder)
[[ -e $out/SHA256SUMS ]] || fail "there are no packages: run  make package"
libc=${LIBC:-gnu}
deb=("$out"/*.deb)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step "sums: of every file, and right"
(cd "$out" && sha256sum --quiet --check SHA256SUMS)
listed=$(cut -c 67- "$out/SHA256SUMS" | sort)
present=$(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort)
[[ $listed == "$present" ]] ||
    fail "SHA256SUMS does not list what is there: $(diff <(echo "$listed") <(echo "$present"))"

step "binaries: what they need, and their symbols"
for file in librollcall.so rollcall; do
    ! readelf --wide --section-headers "$out/$file" | grep -E ' \.(symtab|debug_(info|line|str))' ||
        fail "$file still has the sections above"
    ! grep -aqF "$PWD" "$out/$file" || fail "$file names this folder: $PWD"
done
# Crash reports must be readable. The module names its file of symbols and that file's checksum. The symbols lead from
# the function that servers call first to a line of source.
address=$(nm --dynamic "$out/librollcall.so" | sed -n 's/ T RedisModule_OnLoad$//p')
line=$(addr2line --exe "$out/librollcall.so" "$address")
[[ $line =~ ^/rollcall/src/.*\.rs:[0-9]+ ]] || fail "no line for RedisModule_OnLoad: $line"

# Whether the packages have these: module $1, tool $2, files for monitoring $3, documents $4.
holds() {
    cmp "$out/librollcall.so" "$1" && cmp "$out/rollcall" "$2" && diff -r packaging/monitoring "$3" &&
        scripts/reference.py check "$4"
}
step "the archive and the Debian package hold the same binaries"
tar -xzf "$out/$label.tar.gz" -C "$scratch"
holds "$scratch/$label"/{librollcall.so,bin/rollcall,monitoring,.}
if [[ $libc == gnu ]]; then
    dpkg-deb --extract "${deb[0]}" "$scratch/deb"
    documents=$scratch/deb/usr/share/doc/rollcall
    holds "$scratch/deb/usr"/{lib/redis/modules/librollcall.so,bin/rollcall} "$documents"/{examples/monitoring,.}
fi

step "bills of materials and licences: every crate that is linked"
for package in "${packages[@]}"; do
    cmp "$out/$label-$package.cdx.json" "$scratch/$label/sbom/$package.cdx.json"
    crates=$(scripts/third_party.py --list "$target" "$package")
    while read -r crate; do
        grep -qF "\"pkg:cargo/${crate/ /@}\"" "$out/$label-$package.cdx.json" ||
            fail "the bill of $package lacks $crate"
        grep -qxF "$crate" "$scratch/$label/THIRD-PARTY" || fail "THIRD-PARTY does not have $crate"
    done <<<"$crates"
done

step "packing again gives the same bytes"
cp "$out/SHA256SUMS" "$scratch/first"
# Uses the time of the packed files, because there may be a later commit.
SOURCE_DATE_EPOCH=$(stat -c %Y "$scratch/$label/INSTALL.md") scripts/package.sh pack >"$scratch/log" ||
    fail "packing failed: $(cat "$scratch/log")"
diff "$scratch/first" "$out/SHA256SUMS" || fail "these files differ from one packing to the next"

[[ $libc == gnu ]] || exit 0

step "lintian"
without=()
if [[ -z $(scripts/identity.py maintainer_mail) ]]; then
    echo "packaging/identity.toml has no maintainer_mail yet: lintian's two errors about it are suppressed"
    without=(--suppress-tags malformed-contact,bogus-mail-host-in-debian-changelog)
fi
lintian --allow-root "${without[@]}" --fail-on error,warning --display-info --info "${deb[0]}" ||
    fail "lintian objects: see above. Repair it, or name it in packaging/debian/overrides with the reason"

if [[ -n ${ROLLCALL_ARM64:-} ]]; then
    step "using the unpacked Debian package"
    scripts/arm64.sh installed "$scratch/deb"
    exit
fi
step "installing, using and removing"
packaging/test/scratch_root.sh packaging/test/install.sh deb "${deb[0]}" "$PWD/docs/operations.md"
packaging/test/scratch_root.sh packaging/test/install.sh tarball "$out/$label.tar.gz" "$version"
