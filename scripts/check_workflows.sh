#!/usr/bin/env bash
# Checks .github/workflows/ by actionlint (correctness) and zizmor (security: pinned actions, few
# permissions). `scripts/tools.sh lint` fetches both. Neither uses the network.
set -euo pipefail
cd "$(dirname "$0")/.."

node - target/tools/lint/actionlint .github/workflows/*.yml <<'NODE'
const fs = require("fs");
const [folder, ...files] = process.argv.slice(2);
globalThis.crypto ??= require("crypto").webcrypto; // Node.js 18 has it by this name only
globalThis.throwError = (message) => { throw new Error(message); };
require(fs.realpathSync(`${folder}/wasm_exec.js`));
(async () => {
    const go = new Go();
    const { instance } = await WebAssembly.instantiate(fs.readFileSync(`${folder}/main.wasm`), go.importObject);
    go.run(instance);
    for (const file of files) {
        for (const { message, line, column } of await runActionlint(fs.readFileSync(file, "utf8"), file)) {
            if (!message) continue;
            console.log(`${file}:${line}:${column}: ${message}`);
            process.exitCode = 1;
        }
    }
    process.exit();
})();
NODE

[[ "$(uname -m)" == x86_64 ]] || { echo "workflows: zizmor not run: it is pinned for x86-64 only"; exit; }
target/tools/lint/bin/zizmor --offline --no-progress --quiet --no-config --collect=workflows --persona=pedantic \
    .github/workflows
