// Long lists, routing on clusters, prefixes, and what is rejected before it is sent.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, describe, it } from "node:test";
import { Cluster, type Redis } from "ioredis";
import { createClient } from "redis";
import { rollcall as ofIoredis } from "rollcall-redis/ioredis";
import { modules, rollcall as ofNodeRedis } from "rollcall-redis/node-redis";
import { ioredis, isCluster, nodeRedis, url } from "./variants.js";

const items = (count: number) => Array.from({ length: count }, (_, at) => `member ${at}`);
const node = await nodeRedis(3, "lists:");
const io = ioredis(3, "legacy", "lists:");
if (io.status !== "ready") await once(io, "ready");
after(() => Promise.all([node.close(), io.quit()]));

/** One line of INFO on all servers. */
async function stats(section: string, line: RegExp): Promise<string[]> {
  const servers: Redis[] = io instanceof Cluster ? io.nodes("master") : [io];
  const texts = await Promise.all(servers.map((server) => server.info(section)));
  return texts.flatMap((text) => text.match(line)?.[1] ?? []);
}

/** How often a command was called while `run` ran. */
async function calls(command: string, run: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    const counts = await stats("commandstats", new RegExp(`cmdstat_${command}:calls=(\\d+)`));
    return counts.reduce((sum, one) => sum + Number(one), 0);
  };
  const before = await count();
  await run();
  return (await count()) - before;
}

for (const [title, { bf, lc }] of [
  ["node-redis", ofNodeRedis(node)],
  ["ioredis", ofIoredis(io)],
] as const) {
  describe(`long lists of ${title}`, () => {
    const key = (name: string) => `${title}:${name}`;

    it("of counters are cut, and the replies summed", async () => {
      const options = { EXACT: 65_536, BYTES: 1 << 20 };
      const made = await calls("lc.insert", async () => {
        assert.equal(await lc.insert(key("members"), items(25_000), options), 25_000);
      });
      assert.equal(made, 3);
      assert.equal(await lc.add(key("members"), items(25_001)), 1);
      assert.equal(await lc.rem(key("members"), items(20_000)), 20_000);
      const known = await lc.query(key("members"), items(25_000));
      assert.deepEqual([known.length, known.indexOf(true)], [25_000, 20_000]);
      assert.deepEqual(await lc.mExists(key("members"), items(25_000)), known);
    });

    it("of filters are cut, and the replies joined", async () => {
      await bf.reserve(key("seen"), 1e-6, 100_000);
      const replies = await bf.mAdd(key("seen"), items(25_000));
      assert.deepEqual([replies.length, replies.includes(false)], [25_000, false]);
      assert.equal((await bf.mExists(key("seen"), items(30_000))).indexOf(false), 25_000);
    });

    it("with WIDTH are cut at 2^20 items", async () => {
      const numbers = Uint32Array.from({ length: 2 ** 20 + 5 }, (_, at) => at);
      const runs = [Buffer.from(numbers.buffer), "next"];
      const made = await calls("bf.insert", async () => {
        const replies = await bf.insert(key("packed"), runs, { CAPACITY: 2_000_000, ERROR: 1e-6, WIDTH: 4 });
        assert.deepEqual([replies.length, replies.includes(false)], [2 ** 20 + 6, false]);
      });
      assert.equal(made, 2);
      assert.deepEqual(await bf.query(key("packed"), ["next", "none"], { WIDTH: 4 }), [true, false]);
    });

    it("stop where a filter is full", async () => {
      await bf.reserve(key("full"), 0.01, 12_000, { NONSCALING: true });
      const made = await calls("bf.madd", async () => {
        const replies = await bf.mAdd(key("full"), items(40_000));
        assert.ok(replies.length > 12_000 && replies.length < 20_000);
        assert.deepEqual(replies.map((reply) => reply instanceof Error).indexOf(true), replies.length - 1);
      });
      assert.equal(made, 2);
    });

    it("of ADMIT and of keys are never cut", async () => {
      const made = await calls("lc.admit", async () => {
        const outcomes = await lc.admit(key("admitted"), items(20_000), { LIMIT: 100 });
        assert.deepEqual([outcomes.length, outcomes.lastIndexOf(1)], [20_000, 99]);
      });
      assert.equal(made, 1);
      const many = Array<string>(1_000_001).fill("x");
      const error = /1000001 words in a list, and a call takes 1000000/;
      await assert.rejects(lc.admit(key("admitted"), many, { LIMIT: 100 }), error);
      await assert.rejects(lc.count(many), error);
    });
  });
}

it("long lists are errors in MULTI and pipelines", async () => {
  const error = { name: "RangeError", message: /10001 items, and a call takes 10000: .* in MULTI and pipelines split/ };
  for (const { lc } of [node.multi(), ofNodeRedis(node.multi())]) {
    assert.throws(() => lc.add("multi", items(10_001)), error);
  }
  assert.deepEqual(await ofNodeRedis(node.multi()).lc.add("multi", items(2)).lc.count("multi").execTyped(), [2, 2]);
  await assert.rejects(node.lc.add("multi", items(10_001)), error);
  for (const queue of [io.multi(), io.pipeline()]) {
    assert.throws(() => ofIoredis(queue).bf.mAdd("multi", items(10_001)), error);
  }
});

it("members and options that would be misunderstood are rejected", async () => {
  for (const { lc } of [ofNodeRedis(node), ofIoredis(io)]) {
    for (const wrong of [1, null, true, {}]) {
      await assert.rejects(lc.add("wrong", ["ann", wrong as any]), /expected a string or a Buffer/);
    }
    await assert.rejects(lc.insert("wrong", "ann", { NOCRATE: true } as any), /has no option NOCRATE, but: ERROR, /);
    await assert.rejects(lc.insert("wrong", "ann", { EX: [60, "NOCREATE"] } as any), /a number or a string for EX, got/);
    await assert.rejects(lc.insert("wrong", "ann", { EXAT: new Date() } as any), /a number or a string for EXAT, got/);
    await assert.rejects((lc as any).count("wrong", "other"), /expected options, an object, as argument 2, got string/);
    assert.equal(await lc.count("wrong"), 0);
  }
});

it("keys have the prefix", async () => {
  await node.lc.add("prefixed", "ann");
  await ofIoredis(io).lc.add(Buffer.from("prefixed"), "ben");
  const client = ioredis(2);
  assert.deepEqual((await ofIoredis(client).lc.members("lists:prefixed")).sort(), ["ann", "ben"]);
  await client.quit();
});

it("node-redis has its commands in capitals, and its other modules", async () => {
  const client = await createClient({ url, modules, RESP: 3 }).connect();
  if (!isCluster) {
    assert.equal(await client.bf.ADD("capitals", "ann"), true);
    assert.equal((await client.bf.INFO("capitals")).Capacity, 100);
  }
  assert.equal(typeof client.json.get, "function");
  await client.close();
});

it("RF.* are sent as such", async () => {
  for (const { rf, bf } of [ofNodeRedis(node), ofIoredis(io)]) {
    const made = await calls("rf.mexists", async () => assert.deepEqual(await rf.mExists("rf", "ann"), [false]));
    assert.deepEqual([made, await calls("rf.mexists", () => bf.mExists("rf", "ann"))], [1, 0]);
  }
});

it("node-redis caches no reply", async () => {
  if (isCluster) return;
  const client = createClient({ url, modules, clientSideCache: { ttl: 0, maxEntries: 0 } });
  await client.connect();
  await client.bf.add("cached", "ann");
  const ask = () => client.bf.exists("cached", "ann");
  assert.equal(await calls("bf.exists", async () => [await ask(), await ask()]), 2);
  await client.close();
});

it("each command goes to the node of its key", async () => {
  if (!isCluster) return;
  const nodes = (io as Cluster).nodes().map(({ options: { host, port } }) => ({ host: host!, port: port! }));
  const automatic = new Cluster(nodes, { enableAutoPipelining: true });
  const moved = () => stats("errorstats", /errorstat_MOVED:count=(\d+)/);
  const before = await moved();
  for (const { lc } of [ofNodeRedis(node), ofIoredis(automatic)]) {
    const added = await Promise.all(items(300).map((key) => lc.add(key, "ann")));
    const counted = await Promise.all(items(300).map((key) => lc.interCard([key, key])));
    assert.deepEqual([added.includes(0), counted.some(({ count }) => count !== 1)], [false, false]);
  }
  assert.deepEqual(await moved(), before);
  await automatic.quit();
});
