// Writes the examples of node-redis and ioredis in documents as programs, for the compiler: examples.mjs DOCUMENT...

import { readFileSync, writeFileSync } from "node:fs";

const url = 'process.env["ROLLCALL_URL"]!';
/** What turns a client of a single server into one of a cluster. */
const CLUSTER = [
  [/createClient\b/g, "createCluster"],
  [/\{ url: (.*?!)/, "{ rootNodes: [{ url: $1 }]"],
  ["import { Redis }", "import { Cluster }"],
  [/new Redis\((.*?!)/, "new Cluster([$1]"],
];

for (const [number, document] of process.argv.slice(2).entries()) {
  const sections = readFileSync(document, "utf8").split(/^(?=## )/m);
  for (const client of ["node-redis", "ioredis"]) {
    const [section] = sections.filter((section) => section.startsWith(`## ${client}\n`));
    for (const [at, [, block]] of [...section.matchAll(/^```typescript\n(.*?)^```$/gms)].entries()) {
      const name = `${client}-${number}-${at}.mts`;
      const program = block
        .replace('"redis://127.0.0.1:6379"', url)
        .replace('{ host: "127.0.0.1", port: 6379 }', url);
      if (program === block) throw new Error(`no address in an example of ${client}`);
      const isCluster = /^(?!import).*Cluster\(/m.test(program);
      writeFileSync(`${isCluster ? "cluster" : "single"}-${name}`, program);
      if (!program.includes("rollcall-redis")) continue;
      writeFileSync(`cluster-${name}`, CLUSTER.reduce((changed, [from, to]) => changed.replace(from, to), program));
    }
  }
}
