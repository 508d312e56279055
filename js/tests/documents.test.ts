// Runs the examples of docs/clients.md and README.md, and tests what the page says about lost replies.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { it } from "node:test";
import { promisify } from "node:util";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import { rollcall } from "rollcall-redis/ioredis";
import { modules } from "rollcall-redis/node-redis";
import { isCluster, url } from "./variants.js";

it("the examples run", async () => {
  const start = isCluster ? "cluster-" : "single-";
  const programs = readdirSync(import.meta.dirname).filter((name) => name.startsWith(start));
  assert.equal(programs.length, isCluster ? 6 : 5);
  for (const program of programs) await promisify(execFile)(process.execPath, [`${import.meta.dirname}/${program}`]);
});

type Nodes = Record<string, { host: string; port: number }>;

/**
 * Adds a member through proxies, one for each server, that drop the connection instead of the first reply. Returns the
 * reply or the error, and whether the command was sent again.
 */
async function afterLostReply(add: (nodes: Nodes, key: string) => Promise<unknown>): Promise<[string, boolean]> {
  let sent = 0;
  const nodes: Nodes = {};
  const client = new Redis(url);
  const ports = isCluster
    ? (await client.cluster("SLOTS")).map(([, , node]) => node![1])
    : [Number(new URL(url).port)];
  client.disconnect();
  const proxies = ports.map((port) =>
    createServer((client: Socket) => {
      const server = connect(port);
      client.on("data", (data) => {
        if (data.includes("LC.ADD")) sent += 1;
        server.write(data);
      });
      server.on("data", (data) => (sent === 1 && data.toString() === ":1\r\n" ? client.destroy() : client.write(data)));
      client.on("close", () => server.destroy()).on("error", () => {});
    }),
  );
  for (const [at, proxy] of proxies.entries()) {
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    nodes[`127.0.0.1:${ports[at]}`] = { host: "127.0.0.1", port: (proxy.address() as AddressInfo).port };
  }
  const key = `lost:${Object.values(nodes)[0]!.port}`;
  const reply = await add(nodes, key).catch((error: Error) => error.constructor.name);
  for (const proxy of proxies) proxy.close();
  return [String(reply), sent > 1];
}

it("ioredis sends again after a lost reply, unless it may not", async () => {
  const never = { maxRetriesPerRequest: 0 };
  type Case = [{ maxRetriesPerRequest?: number }, { retryDelayOnFailover?: number }, string, boolean];
  const cases: Case[] = isCluster
    ? [[{}, {}, "0", true], [never, {}, "0", true], [{}, { retryDelayOnFailover: 0 }, "Error", false]]
    : [[{}, {}, "0", true], [never, {}, "MaxRetriesPerRequestError", false]];
  for (const [redisOptions, options, ...expected] of cases) {
    const got = await afterLostReply(async (nodes, key) => {
      const [first] = Object.values(nodes);
      const client = isCluster
        ? new Cluster([first!], { natMap: nodes, redisOptions, ...options })
        : new Redis(first!.port, redisOptions);
      client.on("error", () => {});
      return rollcall(client).lc.add(key, "ann").finally(() => client.disconnect());
    });
    assert.deepEqual(got, expected);
  }
});

it("node-redis rejects after a lost reply", async () => {
  const got = await afterLostReply(async (nodes, key) => {
    const [socket] = Object.values(nodes);
    const client = isCluster
      ? createCluster({ modules, rootNodes: [{ socket: socket! }], nodeAddressMap: nodes })
      : createClient({ modules, socket: socket! });
    await client.on("error", () => {}).connect();
    return client.lc.add(key, "ann").finally(() => client.destroy());
  });
  assert.deepEqual(got, ["SocketClosedUnexpectedlyError", false]);
});
