// Runs the examples of docs/clients.md and README.md, and tests what the page says about lost replies.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { it } from "node:test";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { isCluster, url } from "./variants.js";

it("the examples run", async () => {
  const start = isCluster ? "cluster-" : "single-";
  const programs = readdirSync(import.meta.dirname).filter((name) => name.startsWith(start));
  assert.equal(programs.length, isCluster ? 6 : 5);
  for (const program of programs) await promisify(execFile)(process.execPath, [`${import.meta.dirname}/${program}`]);
});

/** Adds a member through a proxy that drops the connection instead of the first reply. Returns what was sent, too. */
async function afterLostReply(add: (port: number, key: string) => Promise<unknown>): Promise<[string, number]> {
  let sent = 0;
  const proxy = createServer((client: Socket) => {
    const server = connect(Number(new URL(url).port));
    client.on("data", (data) => {
      if (data.includes("LC.ADD")) sent += 1;
      server.write(data);
    });
    server.on("data", (data) => (sent === 1 && data.toString() === ":1\r\n" ? client.destroy() : client.write(data)));
    client.on("close", () => server.destroy()).on("error", () => {});
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const { port } = proxy.address() as AddressInfo;
  const reply = await add(port, `lost:${port}`).catch((error: Error) => error.constructor.name);
  proxy.close();
  return [String(reply), sent];
}

it("ioredis sends again after a lost reply, unless it may not", async () => {
  if (isCluster) return;
  for (const [options, expected] of [
    [{}, ["0", 2]],
    [{ maxRetriesPerRequest: 0 }, ["MaxRetriesPerRequestError", 1]],
  ] as const) {
    const got = await afterLostReply(async (port, key) => {
      const client = new Redis(port, options).on("error", () => {});
      return client.call("LC.ADD", key, "ann").finally(() => client.disconnect());
    });
    assert.deepEqual(got, expected);
  }
});

it("node-redis rejects after a lost reply", async () => {
  if (isCluster) return;
  const got = await afterLostReply(async (port, key) => {
    const client = createClient({ socket: { host: "127.0.0.1", port } }).on("error", () => {});
    await client.connect();
    return client.sendCommand(["LC.ADD", key, "ann"]).finally(() => client.destroy());
  });
  assert.deepEqual(got, ["SocketClosedUnexpectedlyError", 1]);
});
