#!/usr/bin/env bash
# Checks .github/workflows/ by actionlint (are they right?) and zizmor (are they safe: pinned actions, few permissions?).
#
#   scripts/check_workflows.sh               check
#   scripts/check_workflows.sh --self-test   check that both find what is wrong in a workflow made to be wrong
#
# Neither asks the network anything. They are what `scripts/tools.sh workflows` fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/target/tools/workflows

# actionlint on the files given: a line for each finding; fails if there is one, or if it saw no file.
lint() {
    node - "$tools/actionlint" "$@" <<'NODE'
const fs = require("fs");
const [folder, ...files] = process.argv.slice(2);
globalThis.crypto ??= require("crypto").webcrypto; // Node.js 18 has it by this name only
globalThis.throwError = (message) => { throw new Error(message); };
require(`${folder}/wasm_exec.js`);
(async () => {
    const go = new Go();
    const { instance } = await WebAssembly.instantiate(fs.readFileSync(`${folder}/main.wasm`), go.importObject);
    go.run(instance);
    let found = 0;
    for (const file of files) {
        for (const { message, line, column } of await runActionlint(fs.readFileSync(file, "utf8"), file)) {
            if (!message) continue;
            console.log(`${file}:${line}:${column}: ${message}`);
            found++;
        }
    }
    process.exit(found || !files.length ? 1 : 0);
})().catch((error) => { console.error(error); process.exit(1); });
NODE
}

audit() {
    [[ -x $tools/zizmor/bin/zizmor ]] || { echo "workflows: zizmor not run: it is fetched for x86-64 only"; return; }
    "$tools/zizmor/bin/zizmor" --offline --no-progress --quiet --no-config --collect=workflows --persona=pedantic "$@"
}

case "${1:-}" in
    "")
        lint .github/workflows/*.yml
        audit .github/workflows
        echo "workflows: $(ls .github/workflows | wc -l) files, nothing to object to"
        ;;
    --self-test)
        scratch=$(mktemp -d)
        trap 'rm -rf "$scratch"' EXIT
        mkdir -p "$scratch/.github/workflows"
        wrong=$scratch/.github/workflows/wrong.yml
        cat >"$wrong" <<'YAML'
on: push
jobs:
  one:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - run: echo "${{ github.event.head_commit.message }} ${{ matrix.none }}"
YAML
        ! lint "$wrong" >"$scratch/lint" || { echo "self-test: actionlint found nothing"; exit 1; }
        grep -q 'potentially untrusted' "$scratch/lint" || { cat "$scratch/lint"; echo "self-test: actionlint missed the untrusted text"; exit 1; }
        ! lint || { echo "self-test: no file at all passes"; exit 1; }
        if [[ -x $tools/zizmor/bin/zizmor ]]; then
            ! audit "$scratch/.github/workflows" >"$scratch/audit" 2>&1 || { echo "self-test: zizmor found nothing"; exit 1; }
            for rule in unpinned-uses excessive-permissions template-injection; do
                grep -q "$rule" "$scratch/audit" || { cat "$scratch/audit"; echo "self-test: zizmor missed $rule"; exit 1; }
            done
        fi
        echo "workflows: self-test: passed"
        ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
