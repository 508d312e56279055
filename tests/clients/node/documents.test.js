// The examples of docs/clients.md. Those of a client build on each other, so they run as one program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const { hostname, port } = new URL(process.env.ROLLCALL_URL);
const URLS = ["redis://127.0.0.1:6379", process.env.ROLLCALL_URL];
const HOSTS = ['host: "127.0.0.1", port: 6379', `host: "${hostname}", port: ${port}`];

for (const [client, assertions, [address, here]] of [
  ["node-redis", 15, URLS],
  ["ioredis", 10, URLS],
  ["valkey-glide", 4, HOSTS],
]) {
  it(`the examples of ${client} in docs/clients.md run`, async () => {
    const text = await readFile(process.env.ROLLCALL_CLIENTS_DOCUMENT, "utf8");
    const [section] = text.split(/^(?=## )/m).filter((section) => section.startsWith(`## ${client}\n`));
    const blocks = [...section.matchAll(/^```javascript\n(.*?)^```$/gms)].map((match) => match[1]);
    const program = blocks.join("\n");
    assert.ok(program.split("assert.").length > assertions);
    assert.equal(program.split(address).length, 2);
    // A file beside this one finds the client. A process of its own ends at the first example that fails, even if that
    // leaves a connection open.
    const file = fileURLToPath(new URL(`documents-${client}.generated.js`, import.meta.url));
    await writeFile(file, program.replace(address, here));
    await promisify(execFile)(process.execPath, [file]);
  });
}
