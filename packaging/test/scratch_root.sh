#!/usr/bin/env bash
# Runs a command as root in a temporary copy of this machine's file system. Everything that the command installs is
# gone afterwards, even if it fails.
#
#   packaging/test/scratch_root.sh COMMAND [ARGUMENT...]
#
# The copy is at $ROLLCALL_ROOT, in a mount namespace of its own. Changed files are at $ROLLCALL_CHANGES. Nothing is
# really copied: changes go to memory (overlayfs on tmpfs).
set -euo pipefail

fail() { printf 'scratch root: %s\n' "$*" >&2; exit 1; }

if [[ -z "${ROLLCALL_ROOT:-}" ]]; then
    as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || fail "mounting needs root, and there is no sudo here: run this as root"
        as_root=(sudo --preserve-env=PATH)
    fi
    scratch=$(mktemp -d)
    trap 'rmdir "$scratch"' EXIT
    "${as_root[@]}" env ROLLCALL_ROOT="$scratch/root" ROLLCALL_CHANGES="$scratch/changes" \
        unshare --mount --propagation private "$0" "$@"
    exit
fi

scratch=$(dirname "$ROLLCALL_ROOT")
mount -t tmpfs -o mode=755 scratch "$scratch" ||
    fail "this machine does not let root mount a file system (a container without CAP_SYS_ADMIN?): run this on another"
mkdir "$scratch"/{root,changes,work}
mount -t overlay -o "lowerdir=/,upperdir=$scratch/changes,workdir=$scratch/work" overlay "$ROLLCALL_ROOT" ||
    fail "this machine has no overlayfs: run this on another"
for folder in proc sys dev; do mount --rbind "/$folder" "$ROLLCALL_ROOT/$folder"; done
mount -t tmpfs -o mode=1777 tmp "$ROLLCALL_ROOT/tmp"
mount -t tmpfs -o mode=755 run "$ROLLCALL_ROOT/run"
exec "$@"
