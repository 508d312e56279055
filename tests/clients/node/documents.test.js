// Runs the example of valkey-glide in docs/clients.md (js/tests runs those of node-redis and ioredis), and tests the
// page's statements about values and about node-redis' cache.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Decoder, GlideClient } from "@valkey/valkey-glide";
import Redis from "ioredis";
import { createClient } from "redis";

const url = process.env.ROLLCALL_URL;
const { hostname, port } = new URL(url);

it("the examples of valkey-glide in docs/clients.md run", async () => {
  const text = await readFile(process.env.ROLLCALL_CLIENTS_DOCUMENT, "utf8");
  const [section] = text.split(/^(?=## )/m).filter((section) => section.startsWith("## valkey-glide\n"));
  const blocks = [...section.matchAll(/^```javascript\n(.*?)^```$/gms)].map((match) => match[1]);
  const program = blocks.join("\n");
  const address = 'host: "127.0.0.1", port: 6379';
  assert.ok(program.split("assert.").length > 4);
  assert.equal(program.split(address).length, 2);
  // The file is in this folder, so that Node.js finds the client. It runs in a process of its own, which ends at the
  // first failing example.
  const file = fileURLToPath(new URL("documents.generated.js", import.meta.url));
  await writeFile(file, program.replace(address, `host: "${hostname}", port: ${port}`));
  await promisify(execFile)(process.execPath, [file]);
});

/** That a client stores each value of the page's table as its row has it. */
async function hasMembers(name, call) {
  const text = await readFile(process.env.ROLLCALL_CLIENTS_DOCUMENT, "utf8");
  const row = text.split("\n").find((line) => line.startsWith(`| ${name} | `));
  const shown = row.split("|").slice(2, -1).map((cell) => cell.trim().replaceAll("`", ""));
  const values = [1.0, 0.1 + 0.2, 1e16, 1e21, true, null];
  assert.equal(shown.length, values.length);
  for (const [at, value] of values.entries()) {
    const key = `members:${name}:${at}`;
    await call("DEL", key);
    if (shown[at] === "rejected") {
      await assert.rejects(async () => call("LC.ADD", key, value), `${name}: ${value}`);
    } else {
      await call("LC.ADD", key, value);
      assert.deepEqual(await call("LC.MEMBERS", key), [shown[at] === "empty" ? "" : shown[at]], `${name}: ${value}`);
    }
  }
}

it("members of node-redis", async () => {
  const client = await createClient({ url }).connect();
  await hasMembers("node-redis", (...words) => client.sendCommand(words));
  await client.close();
});

it("members of ioredis", async () => {
  const client = new Redis(url);
  await hasMembers("ioredis", (...words) => client.call(...words));
  await client.quit();
});

it("members of valkey-glide", async () => {
  const options = { addresses: [{ host: hostname, port: Number(port) }], requestTimeout: 60_000 };
  const client = await GlideClient.createClient(options);
  await hasMembers("valkey-glide, Node.js", (...words) => client.customCommand(words, { decoder: Decoder.String }));
  client.close();
});

it("the cache of node-redis has replies of filters", async () => {
  const plain = await createClient({ url }).connect();
  const cached = await createClient({ url, RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0 } }).connect();
  await plain.set("cached:text", "a");
  await plain.bf.add("cached:seen", "a");
  await plain.sendCommand(["CONFIG", "RESETSTAT"]);
  for (let call = 0; call < 2; call += 1) {
    await cached.get("cached:text");
    await cached.bf.exists("cached:seen", "a");
    await cached.bf.mExists("cached:seen", ["a"]);
    await cached.bf.card("cached:seen");
  }
  const stats = await plain.info("commandstats");
  for (const [command, calls] of [["get", 1], ["bf.exists", 1], ["bf.mexists", 1], ["bf.card", 1]]) {
    assert.match(stats, new RegExp(`cmdstat_${command}:calls=${calls},`));
  }
  await Promise.all([plain.close(), cached.close()]);
});
