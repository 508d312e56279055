// Writes the examples of node-redis and ioredis in docs/clients.md as programs, for the compiler: examples.mjs DOCUMENT

import { readFileSync, writeFileSync } from "node:fs";

const url = 'process.env["ROLLCALL_URL"]!';
/** What turns a client of a single server into one of a cluster. */
const CLUSTER = [
  [/createClient\b/g, "createCluster"],
  [/\{ url: (.*?!)/, "{ rootNodes: [{ url: $1 }]"],
  ["import { Redis }", "import { Cluster }"],
  [/new Redis\((.*?!)/, "new Cluster([$1]"],
];

const text = readFileSync(process.argv[2], "utf8");
for (const client of ["node-redis", "ioredis"]) {
  const [section] = text.split(/^(?=## )/m).filter((section) => section.startsWith(`## ${client}\n`));
  for (const [at, [, block]] of [...section.matchAll(/^```typescript\n(.*?)^```$/gms)].entries()) {
    const program = block
      .replace('"redis://127.0.0.1:6379"', url)
      .replace('{ host: "127.0.0.1", port: 6379 }', url);
    if (program === block) throw new Error(`no address in an example of ${client}`);
    const isCluster = /\bcreateCluster|\bCluster\b/.test(program);
    writeFileSync(`${isCluster ? "cluster" : "single"}-${client}-${at}.mts`, program);
    if (!program.includes("rollcall-redis")) continue;
    const other = CLUSTER.reduce((changed, [from, to]) => changed.replace(from, to), program);
    writeFileSync(`cluster-${client}-${at}.mts`, other);
  }
}
