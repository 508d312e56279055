#!/usr/bin/env bash
# Builds the images from the module and the tool that `scripts/package.sh build` compiled for glibc and for musl.
# `make image` runs it.
#
#   scripts/image.sh build [IMAGE...]   build these images, or all
#   scripts/image.sh name IMAGE         print an image's full name; `base IMAGE`: print the name of its base image
#   scripts/image.sh list               print the images: one has only the files, the others a server each;
#                                       `folder`: print the folder in which images are built
#
# Podman builds the images; with ENGINE=docker, Docker does. ARCH=arm64 or amd64 builds for another processor. The
# kernel must then be able to start its programs (`scripts/arm64.sh emulated`).
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'image: %s\n' "$*" >&2; exit 1; }
step() { printf 'image: %s\n' "$*"; }

case "$(uname -m)" in aarch64) here=arm64 ;; *) here=amd64 ;; esac
export ARCH=${ARCH:-$here}
case "$ARCH" in
    amd64) machine=X86-64 ;;
    arm64) machine=AArch64 ;;
    *) fail "ARCH=$ARCH is neither amd64 nor arm64" ;;
esac
folder=target/image
[[ $ARCH == "$here" ]] || folder+=-$ARCH
context=$folder/context
images=(files redis redis-alpine valkey valkey-alpine)
declare -A bases=([redis]=docker.io/library/redis:8 [redis-alpine]=docker.io/library/redis:8-alpine
    [valkey]=docker.io/valkey/valkey:9 [valkey-alpine]=docker.io/valkey/valkey:9-alpine)

version=$(scripts/package.sh version)
repository=$(scripts/identity.py image)
source=$(scripts/identity.py repository)

# The name of an image for another processor contains that processor. `podman manifest` can unite both images.
name() { echo "${repository:-rollcall}:$version-$1$([[ $ARCH == "$here" ]] || echo "-$ARCH")"; }

# Collects the files that the Containerfile copies.
stage() {
    local libc out packages files=$context/$ARCH
    umask 022
    rm -rf "$context"
    mkdir -p "$context/licenses" "$files/bin"
    for libc in gnu musl; do
        out=$(LIBC=$libc scripts/package.sh folder)
        [[ -e $out/librollcall.so && -e $out/rollcall ]] || fail "$out has no module and tool: run  make image"
        install -D -m 755 "$out/librollcall.so" "$files/$libc/librollcall.so"
    done
    [[ $(readelf --file-header "$files"/*/*.so | grep -c "Machine:.*$machine") == 2 ]] ||
        fail "the modules are not for $ARCH"
    # This tool needs no C library, so it runs even in an image with nothing else.
    install -m 755 "$out/rollcall" "$files/bin/"
    install -m 755 packaging/images/entrypoint.sh "$context/rollcall-entrypoint.sh"
    mapfile -t packages < <(scripts/package.sh packages)
    scripts/third_party.py "$(scripts/package.sh target)" "${packages[@]}" >"$context/licenses/THIRD-PARTY"
    install -m 644 LICENSE-MIT LICENSE-APACHE "$context/licenses/"
}

build() {
    local image options
    for image in "$@"; do
        [[ $image == files || -n ${bases[$image]:-} ]] || fail "there is no image '$image': ${images[*]}"
    done
    stage
    for image in "$@"; do
        options=(--target files)
        [[ $image == files ]] || options=(--target server --build-arg BASE="${bases[$image]}")
        [[ -z $source ]] || options+=(--label org.opencontainers.image.source="$source")
        [[ $image != *-alpine ]] || options+=(--build-arg LIBC=musl)
        step "$(name "$image")"
        # Podman's own format has no health check.
        BUILDAH_FORMAT=docker "${ENGINE:-podman}" build --quiet --file packaging/Containerfile \
            --platform "linux/$ARCH" --build-arg TARGETARCH="$ARCH" \
            --label org.opencontainers.image.version="$version" --tag "$(name "$image")" "${options[@]}" "$context" \
            >/dev/null ||
            fail "building failed: the message is above. Without a registry, \`make test-image\` makes base images"
    done
    step "done: $*"
}

case "${1:-}" in
    build) shift && { (($#)) || set -- "${images[@]}"; } && build "$@" ;;
    name) name "$2" ;;
    base) echo "${bases[$2]}" ;;
    folder) echo "$folder" ;;
    list) printf '%s\n' "${images[@]}" ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
