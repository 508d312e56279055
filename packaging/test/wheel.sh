#!/usr/bin/env bash
# Checks the results of `make wheel` in target/python/wheels/: the libraries that the wheel needs, its contents, a
# wheel built from the source distribution in an empty environment, and the installation by pip on Debian 11, which
# has glibc 2.31.
#
# Debian 11 is a folder in target/python/. A Python 3.11 is compiled in it, which takes some minutes the first time.
# Making the folder needs root and mmdebstrap. `make test-wheel` runs this script. ARCH=arm64 tests the wheel for
# AArch64, with an arm64 Python under qemu.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'test-wheel: %s\n' "$*" >&2; exit 1; }
step() { printf '== %s\n' "$*"; }

if [[ ${ARCH:-} == arm64 && $(uname -m) == x86_64 && -z ${ROLLCALL_ARM64:-} ]]; then exec scripts/arm64.sh run "$0"; fi
folder=$PWD/target/python
root=$folder/debian-11
version=$(scripts/package.sh version)
target=$(scripts/package.sh target)
wheel=$folder/wheels${ROLLCALL_ARM64:+-arm64}/rollcall_redis-$version-cp311-abi3-manylinux_2_28_${target%%-*}.whl
source=$folder/wheels/rollcall_redis-$version.tar.gz
[[ -e $wheel && ( -e $source || -n ${ROLLCALL_ARM64:-} ) ]] ||
    fail "the wheel or the source distribution is missing: run  make wheel"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
pip=(python3 -m pip --quiet --disable-pip-version-check)

# The first steps of a user.
cat >"$scratch/use.py" <<'PYTHON'
import os, platform, sys
import rollcall_redis
from rollcall_redis import BloomFilter, Counter

seen, visitors = BloomFilter(1000, 0.001), Counter()
assert seen.add("ann") and not seen.add("ann") and "ann" in seen and "zoe" not in seen
visitors.update(str(number) for number in range(10_000))
assert abs(visitors.count() - 10_000) < 4 * visitors.estimate().standard_error
seen.save("seen.rollcall")
assert BloomFilter.load("seen.rollcall") == seen and BloomFilter.from_bytes(seen.to_bytes()) == seen
os.remove("seen.rollcall")
where = f"CPython {platform.python_version()}, {' '.join(platform.libc_ver())}"
print(f"rollcall_redis {rollcall_redis.__version__} works on {where}")
PYTHON

step "the wheel: what it needs, licences, bill of materials"
mkdir "$scratch/wheel" "$scratch/source"
python3 -m zipfile -e "$wheel" "$scratch/wheel"
library=$scratch/wheel/rollcall_redis/_rollcall.abi3.so
info=$scratch/wheel/rollcall_redis-$version.dist-info
scripts/package.sh check "$library"
! grep -raqF "$PWD" "$scratch/wheel" || fail "the wheel names this folder: $(grep -raFl "$PWD" "$scratch/wheel")"
for file in LICENSE-MIT LICENSE-APACHE; do cmp "$file" "$info/licenses/$file"; done
bill=$info/sboms/rollcall-python.cdx.json
crates=$(scripts/third_party.py --list "$target" rollcall-python)
while read -r crate; do
    grep -qF "\"pkg:cargo/${crate/ /@}\"" "$bill" || fail "the bill of materials lacks $crate"
    grep -qxF "$crate" "$info/licenses/THIRD-PARTY" || fail "THIRD-PARTY lacks $crate"
done <<<"$crates"

if [[ -n ${ROLLCALL_ARM64:-} ]]; then
    step "the unpacked wheel, by Debian's Python for AArch64"
    scripts/arm64.sh python "$scratch/wheel" "$scratch/use.py"
    step "make test-wheel: the wheel for AArch64 is right"
    exit
fi

step "the source distribution: licences, and a wheel of it in an empty environment"
tar -xzf "$source" -C "$scratch/source" --strip-components=1
for file in LICENSE-MIT LICENSE-APACHE THIRD-PARTY; do
    cmp "$info/licenses/$file" "$scratch/source/$file"
done
python3 -m venv --without-pip "$scratch/empty"
CARGO_TARGET_DIR=$folder/from-source "${pip[@]}" --python "$scratch/empty/bin/python" install --no-binary \
    rollcall-redis "$source"
(cd "$scratch" && empty/bin/python use.py)

step "pip install on Debian 11"
if [[ ! -e $root/usr/local/bin/python3.11 ]]; then
    ((EUID == 0)) || fail "a root for Debian 11 can only be made by root: run this as root"
    rm -rf "$root" "$folder/debian-sources"
    # Packages are unpacked without running their scripts, which a compiler does not need.
    mmdebstrap --quiet --variant=extract \
        --include=gcc,libc6-dev,make,zlib1g-dev,libc-bin,bash,dash,coreutils,sed,grep,mawk,diffutils,findutils \
        bullseye "$root" ||
        fail "mmdebstrap failed: its message is above"
    ln -s mawk "$root/usr/bin/awk"
    ln -s gcc "$root/usr/bin/cc"
    mkdir -p "$folder/debian-sources/lists/partial" "$root/source"
    (
        cd "$folder/debian-sources"
        key=/usr/share/keyrings/debian-archive-keyring.gpg
        echo "deb-src [signed-by=$key] http://deb.debian.org/debian bookworm main" >list
        options=(-o Dir::Etc::SourceList="$PWD/list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists"
            -o APT::Sandbox::User=root)
        apt-get "${options[@]}" --quiet=2 update
        apt-get "${options[@]}" --quiet=2 --tar-only --download-only source python3.11 >/dev/null
        tar -xf python3.11_*.orig.tar.* -C "$root/source" --strip-components=1
    )
    echo "compiling Python 3.11 on Debian 11"
    chroot "$root" bash -c "cd /source && ./configure --quiet --disable-test-modules CFLAGS='-O1 -g0' &&
        make -j$(nproc) && make install" >"$folder/debian-11.log" 2>&1 ||
        fail "compiling Python failed: $folder/debian-11.log"
fi
cp "$wheel" "$scratch/use.py" "$root/tmp/"
chroot "$root" bash -c "cd /tmp && python3.11 -m venv --clear new &&
    new/bin/pip --quiet --disable-pip-version-check install --no-index ./${wheel##*/} && new/bin/python use.py"
rm -rf "$root/tmp/new"
step "make test-wheel: the wheel is right"
