#!/usr/bin/env bash
# Rehearses a release: checks everything that a program can check, collects the files to publish in
# target/release-VERSION/, and lists what is left for the owner. It does not tag, push, publish or sign anything.
# `make release VERSION=X.Y.Z` runs it.
#
#   scripts/release.sh check VERSION     the tree: clean, versions agree, golden files, changelog, names and addresses
#   scripts/release.sh gather VERSION    its packages, wheels and images, the crates, and what was measured
#
# An error stops the script. A gap, such as a missing part, is listed at the end; with FINAL=1 it also stops the script.
# For machines without a registry, BASES=made builds the images on the base images of `make test-image`.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'release: %s\n' "$*" >&2; exit 1; }
step() { printf 'release: %s\n' "$*"; }
# What the owner does about gaps, in his order, and the names of missing files.
gaps=() missing=()
gap() { gaps+=("$*"); }

command=${1:-} version=${2:-}
[[ $command == check || $command == gather ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "which version? make release VERSION=0.1.0"
out=target/release-$version
identity() { scripts/identity.py "$1"; }

# Prints the section of the version in CHANGELOG.md.
changes() { awk -v head="## [$version]" '/^## /{ inside = index($0, head) == 1 } inside' CHANGELOG.md; }

find_gaps() {
    local keys date golden
    [[ -z $(git status --porcelain) ]] || fail "the tree is not clean: $(git status --porcelain | head -n 3)"
    scripts/identity.py check
    keys=$(scripts/identity.py missing | paste -sd ' ')
    [[ -z $keys ]] || gap "Fill in packaging/identity.toml ($keys), and run scripts/identity.py write"
    date=$(changes | sed -nE '1s/^## \[[^]]*\] - (.*)/\1/p')
    [[ -n $date ]] || fail "CHANGELOG.md has no heading '## [$version] - DATE'"
    [[ $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || gap "Write the date into CHANGELOG.md, which says '$date'"
    ! grep -q "^Version .*not released yet" README.md || gap "Take 'not released yet' out of README.md"
    # `check` has verified the list. Every line of an earlier tag's list must still be there.
    golden=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || return 0
    [[ $golden != "v$version" ]] || fail "the tag $golden is there already"
    ! git diff "$golden" -- core/tests/golden/released.txt | grep '^-[^-]' ||
        fail "the lines above are gone from released.txt since $golden"
}

check() {
    local file unlisted
    find_gaps
    step "versions"
    [[ $(scripts/package.sh version) == "$version" ]] || fail "Cargo.toml is at $(scripts/package.sh version)"
    cargo metadata --locked --format-version 1 >/dev/null ||
        fail "Cargo.lock is not up to date: cargo check --workspace"
    grep -q "^rollcall ($version-[0-9]*) " <(head -n 1 packaging/debian/changelog) ||
        fail "packaging/debian/changelog does not begin with $version"
    grep -q "^rollcall-core = .*version = \"$version\"" cli/Cargo.toml ||
        fail "the tool does not ask for rollcall-core $version"
    grep -q 'dynamic = \["version"\]' python/pyproject.toml || fail "python/pyproject.toml has a version of its own"
    grep -q "^Version $(sed 's/\./\\./g' <<<"$version")[,.]" README.md ||
        fail "README.md does not say 'Version $version' at its head"
    for file in LICENSE-MIT LICENSE-APACHE; do
        cmp "$file" "core/$file" && cmp "$file" "cli/$file" || fail "the crates have another $file"
    done
    step "golden files: all listed, unchanged, and loaded"
    unlisted=$(git ls-files core/tests/golden tests/server/golden | grep -vE '\.rs$|/released\.txt$' |
        grep -vxFf <(cut -d' ' -f4 core/tests/golden/released.txt) || true)
    [[ -z $unlisted ]] || fail "not in core/tests/golden/released.txt (see docs/releasing.md): $unlisted"
    cargo test --quiet --locked --package rollcall-core --test released --test golden >/dev/null ||
        fail "golden files: the message is above"
}

# Copies matching files into $out. If there are none, $1 is missing.
take() {
    local files=()
    mapfile -t files < <(compgen -G "$2" || true)
    if ((${#files[@]})); then cp "${files[@]}" "$out/"; else missing+=("$1"); fi
}

# Builds the images for processor $1, and lists them with their digests. They are not copied.
images() {
    local image name apart run=()
    if [[ ${BASES:-} == made ]]; then
        # `make test-image` keeps them apart from the images of the machine.
        apart=$PWD/$(ARCH=$1 scripts/image.sh folder)
        export CONTAINERS_CONF=$apart/containers.conf CONTAINERS_STORAGE_CONF=$apart/storage.conf
    fi
    [[ $1 == "$(dpkg --print-architecture)" ]] || run=(scripts/arm64.sh emulated)
    for image in $(scripts/image.sh list); do
        name=$(ARCH=$1 scripts/image.sh name "$image")
        ARCH=$1 "${run[@]}" scripts/image.sh build "$image" || { missing+=("image $name"); continue; }
        "${ENGINE:-podman}" image inspect --format "{{.Id}} $name" "$name" >>"$out/images.txt"
    done
}

gather() {
    local kind commit made archive
    find_gaps
    rm -rf "$out"
    mkdir -p "$out"
    step "packages"
    commit=$(TZ=UTC git log -1 --format=%cd --date=format-local:'%Y-%m-%d %H:%M:%S')
    for archive in target/package*/rollcall-"$version"-*-linux-{gnu,musl}.tar.gz; do
        [[ -e $archive ]] || continue
        (cd "${archive%/*}" && sha256sum --quiet --check SHA256SUMS) ||
            fail "${archive%/*} is not what make package made"
        # All files in an archive have the time of the commit.
        made=$(TZ=UTC tar --list --verbose --full-time --file "$archive" | awk 'NR == 1 { print $4, $5 }')
        [[ $made == "$commit" ]] || fail "$archive is of another commit: make package"
    done
    for kind in -x86_64-linux-gnu -x86_64-linux-musl -aarch64-linux-gnu -aarch64-linux-musl; do
        take "archive$kind" "target/package*/rollcall-$version$kind*"
    done
    for kind in amd64 arm64; do take "Debian package for $kind" "target/package*/rollcall_$version-*_$kind.deb"; done
    for kind in x86_64 aarch64; do
        take "wheel for $kind" "target/python/wheels*/rollcall_redis-$version-*_$kind.whl"
    done
    take "sdist" "target/python/wheels/rollcall_redis-$version.tar.gz"
    take "npm package" "target/npm/$(identity npm_package)-$version.tgz"
    step "images"
    for kind in ${PROCESSORS:-}; do images "$kind"; done
    [[ -n ${PROCESSORS:-} ]] || missing+=("images")
    ((!${#missing[@]})) ||
        gap "Make what is missing; messages above say why: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
    [[ ${BASES:-} != made ]] || gap "Build the images on the official base images: leave out BASES=made"
    step "measurements"
    [[ -e target/accuracy/tables.md ]] || gap "Measure accuracy: make accuracy"
    compgen -G "target/benchmarks/*.md" >/dev/null || gap "Measure speed: make bench"
    mkdir -p target/accuracy target/benchmarks
    tar --create --gzip --file "$out/rollcall-$version-measurements.tar.gz" --directory target accuracy benchmarks
    step "crates: each compiled from what would be published (some minutes the first time)"
    cargo package --quiet --locked --package rollcall-core --package rollcall-cli --target-dir target/crates ||
        fail "cargo package: its message is above"
    cp "target/crates/package/rollcall-core-$version.crate" "target/crates/package/rollcall-cli-$version.crate" "$out/"
    step "notes and sums"
    # Release notes are read outside the repository, so links to its files become plain text.
    changes | sed -E '1d; s/\[([^]]*)\]\([^):]*\)/\1/g' >"$out/NOTES.md"
    (cd "$out" && LC_ALL=C && sha256sum -- * >SHA256SUMS)
    (cd "$out" && LC_ALL=C && for file in *; do printf '  %10d  %s\n' "$(stat -c %s "$file")" "$file"; done)
    left | tee "$out/LEFT.md"
    (($(wc -l <"$out/LEFT.md") <= 30)) || fail "what is left takes more than 30 lines: join some"
    ((!${#gaps[@]})) || [[ ${FINAL:-} != 1 ]] || fail "${#gaps[@]} gaps, the first steps above"
    step "$version is rehearsed, with ${#gaps[@]} gaps: $out"
}

# Prints what is left for the owner, in the order in which he does it.
left() {
    local steps=("${gaps[@]}")
    ((!${#gaps[@]})) || steps+=("Commit what has changed, and run again: make release VERSION=$version FINAL=1")
    steps+=(
        "Tag and push: git tag -s v$version && git push origin v$version"
        "Wait for the workflow 'release', which builds, tests, attests and publishes the packages and wheels"
        "Give the release its notes: gh release edit v$version --notes-file $out/NOTES.md"
        "Sign its sums: gh release download v$version --pattern SHA256SUMS && gpg --armor --detach-sign SHA256SUMS"
        "Add the signature: gh release upload v$version SHA256SUMS.asc"
        "Publish crates: cargo publish -p $(identity crate_library) && cargo publish -p $(identity crate_tool)"
        "Publish $(identity python_package): twine upload its files of the release, from gh release download v$version"
        "Publish $(identity npm_package): npm publish $out/$(identity npm_package)-$version.tgz"
        "Push the images of $out/images.txt to $(identity image | grep . || echo "the registry of identity.toml")"
        "Check the published files: docs/releasing.md, 'How to check a release'"
    )
    printf '# Left for the owner, in this order, before %s is published\n\n' "$version"
    printf '%s\n' "${steps[@]}" | awk '{ print NR ". " $0 }'
}

"$command"
