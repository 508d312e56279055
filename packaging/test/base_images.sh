#!/usr/bin/env bash
# Makes substitutes for the official images that the images are built on, for machines without a registry: Redis 8.2.3
# and Valkey 9.1.2 on Debian's files, and Redis 7.0 and Valkey 8.1 for musl, compiled here from Debian's sources.
# ARCH=arm64 makes them for AArch64.
#
# They have the parts of the official images that matter: the user 999 with the folder /data, and a
# `docker-entrypoint.sh` that passes options to the server. That of Redis also loads each module of a folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'base_images: %s\n' "$*" >&2; exit 1; }
step() { printf 'base_images: %s\n' "$*"; }

export ARCH=${ARCH:-$(dpkg --print-architecture)}
work=$(scripts/image.sh folder)
compiler=(CC=musl-gcc)
strip=strip suffix=
if [[ $ARCH != "$(dpkg --print-architecture)" ]]; then
    suffix=-$ARCH
    compiler=(CC="$PWD/target/arm64/musl-cc" AR="$PWD/target/arm64/musl-ar")
    strip=$PWD/target/arm64/bin/strip
fi
mkdir -p "$work/sources/lists/partial"
redis=redis-8.2.3$suffix valkey=valkey-9.1.2$suffix
scripts/servers.py fetch "$redis" "$valkey" redisbloom-2.8.2

# Unpacks these packages into the archive $1. Their scripts are not run, because a server needs none of them.
root() {
    local packages=${*:2}
    [[ ! -e $work/$1 ]] || return 0
    step "${packages} from Debian"
    mmdebstrap --quiet --architectures="$ARCH" --variant=extract --include="${packages// /,}" \
        --dpkgopt='path-exclude=/usr/share/*' bookworm "$work/part.tar" ||
        fail "mmdebstrap failed: the message is above"
    mv "$work/part.tar" "$work/$1"
}

# Compiles the server $1 and its client for musl, from the newest source package of Debian $2. Takes a minute.
compile() {
    local out=$work/musl/$1 sources=$work/sources site options
    [[ ! -e $out ]] || return 0
    step "compiling $1 for musl"
    # The mirror from which this machine gets its packages.
    site=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Codename: bookworm' | sed -n 1p)
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $2 main" >"$sources/list"
    options=(-o Dir::Etc::SourceList="$PWD/$sources/list" -o Dir::Etc::SourceParts=-
        -o Dir::State::Lists="$PWD/$sources/lists" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" --quiet=2 update || fail "apt-get has no list of Debian $2's sources"
    # Debian's patches are left out, because they use Debian's own libraries.
    (cd "$sources" && rm -rf "$1"[-_]* &&
        apt-get "${options[@]}" --quiet=2 --tar-only --download-only source "$1" >/dev/null &&
        tar -xf "$1"_*.orig.tar.* && mv "$1"-[0-9]* "$1-source") || fail "the source of $1 could not be fetched"
    make -C "$sources/$1-source/src" -j "$(nproc)" "${compiler[@]}" MALLOC=libc USE_SYSTEMD=no OPTIMIZATION=-O1 \
        "$1-server" "$1-cli" >"$sources/$1.log" 2>&1 || fail "compiling failed: $sources/$1.log"
    mkdir -p "$out.part"
    "$strip" -o "$out.part/$1-server" "$sources/$1-source/src/$1-server"
    "$strip" -o "$out.part/$1-cli" "$sources/$1-source/src/$1-cli"
    mv "$out.part" "$out"
}

# Makes the base image for the image $1 with the server $2, from the archive $3 and the files in further arguments.
image() {
    local server=$2 context=$work/base prepare=true after=true
    step "$(scripts/image.sh base "$1")"
    rm -rf "$context"
    mkdir -p "$context/bin" "$context/modules"
    cp -l "$work/$3" "$context/root.tar"
    install -m 755 "${@:4}" "$context/bin/"
    # RedisBloom, which the Containerfile has to remove.
    [[ $server != redis ]] || install -m 755 "$(scripts/servers.py path redisbloom-2.8.2)" "$context/modules/"
    if [[ $1 == *-alpine ]]; then
        prepare='["/bin/busybox", "sh", "-c", "cd bin && /bin/busybox --install -s ."]'
    elif [[ $server == valkey ]]; then
        after='cp /usr/bin/redis-cli /usr/local/bin/valkey-cli'
    fi
    cat >"$context/bin/docker-entrypoint.sh" <<END
#!/bin/sh
case "\$1" in -* | *.conf) set -- $server-server "\$@" ;; esac
for module in /usr/local/lib/redis/modules/*.so; do
    if [ -s "\$module" ]; then set -- "\$@" --loadmodule "\$module"; fi
done
exec "\$@"
END
    chmod 755 "$context/bin/docker-entrypoint.sh"
    cat >"$context/Containerfile" <<END
FROM scratch
ADD root.tar /
RUN $prepare
COPY bin/ /usr/local/bin/
COPY modules/ /usr/local/lib/redis/modules/
RUN $after && mkdir -p /data /tmp && chown 999:999 /data && \\
    echo '$server:x:999:999::/data:/bin/sh' >>/etc/passwd && echo '$server:x:999:' >>/etc/group
WORKDIR /data
EXPOSE 6379
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["$server-server"]
END
    BUILDAH_FORMAT=docker podman build --quiet --platform "linux/$ARCH" --tag "$(scripts/image.sh base "$1")" \
        "$context" >/dev/null ||
        fail "building failed: the message is above"
}

root debian.tar base-files dash coreutils findutils grep libc6 libstdc++6 redis-tools
root musl.tar base-files busybox-static musl
compile redis bookworm
compile valkey trixie
image redis redis debian.tar "$(scripts/servers.py path "$redis")"
image redis-alpine redis musl.tar "$work"/musl/redis/*
image valkey valkey debian.tar "$(scripts/servers.py path "$valkey")"
image valkey-alpine valkey musl.tar "$work"/musl/valkey/*
