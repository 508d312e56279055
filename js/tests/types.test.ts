// The types of the package, which the compiler checks here, and the package as an application finds it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { it } from "node:test";
import type { Cluster, Redis } from "ioredis";
import { createClient, RESP_TYPES } from "redis";
import type { Estimate, ItemError, Outcome, Room } from "rollcall-redis";
import { rollcall as ofIoredis } from "rollcall-redis/ioredis";
import { modules, rollcall as ofNodeRedis } from "rollcall-redis/node-redis";
import { isCluster } from "./variants.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if the type of the promised value is exactly `Expected`. */
const is = <Expected>() => <Got>(_: Promise<Got>, ..._same: Same<Got, Expected> extends true ? [] : [never]) => {};

// Never called: only compiled.
export async function typed(io: Redis | Cluster) {
  const client = createClient({ modules, RESP: 3 });
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  for (const { bf, lc } of [client, ofNodeRedis(client), ofIoredis(io)]) {
    is<number>()(lc.add("key", ["ann", Buffer.of(255)]));
    is<boolean>()(bf.add("key", "ann"));
    is<(boolean | ItemError)[]>()(bf.mAdd("key", "ann"));
    is<boolean[]>()(lc.mExists("key", ["ann"]));
    is<Estimate>()(lc.diffCard(["a", "b"], { SINCE: [60, "-"] }));
    is<Outcome[]>()(lc.admit("key", "ann", { LIMIT: 2 }));
    is<Room>()(bf.admitWithRoom("key", "ann", { LIMIT: 2, WINDOW: 60, VOLATILE: true }));
    is<string[]>()(lc.members("key"));
    is<"OK">()(bf.reserve("key", 0.01, 1000, { WINDOW: 60, SLICES: 6, MANUAL: true }));
    is<"OK">()(lc.advance("key", "CLOCK"));
    // @ts-expect-error one of EX and PX
    void lc.reserve("key", { EX: 60, PX: 60 });
    // @ts-expect-error SLICES without WINDOW
    void lc.insert("key", "ann", { SLICES: 6 });
    // @ts-expect-error one of MANUAL and VOLATILE
    void bf.insert("key", "ann", { WINDOW: 60, MANUAL: true, VOLATILE: true });
    // @ts-expect-error a VOLATILE key expires once it is empty
    void lc.admit("key", "ann", { LIMIT: 2, WINDOW: 60, VOLATILE: true, EX: 60 });
    // @ts-expect-error NONSCALING with WINDOW
    void bf.insert("key", "ann", { NONSCALING: true, WINDOW: 60 });
    void bf.insert("key", "ann", { NONSCALING: true, EXPANSION: 2 });
    // @ts-expect-error NONSCALING with EXPANSION, which only the other commands ignore
    void bf.reserve("key", 0.01, 1000, { NONSCALING: true, EXPANSION: 2 });
    void bf.insert("key", "ann", { LAYOUT: "lines", WINDOW: 60 });
    // @ts-expect-error RedisBloom's layout has no windows
    void bf.insert("key", "ann", { LAYOUT: "classic", WINDOW: 60 });
    // @ts-expect-error LIMIT is required
    void lc.admit("key", "ann", {});
    // @ts-expect-error a number is no member
    void lc.add("key", [1]);
    // @ts-expect-error another layout
    void bf.reserve("key", 0.01, 1000, { LAYOUT: "line" });
    // @ts-expect-error a field of filters
    void lc.infoField("key", "FPR");
  }
  is<Buffer[]>()(binary.lc.members("key"));
  is<Buffer[]>()(ofNodeRedis(binary).lc.union("key"));
  is<Buffer[]>()(ofIoredis(io, { buffers: true }).lc.members("key"));
  is<[number, string[]]>()(client.multi().lc.add("key", "ann").lc.members("key").execTyped());
  ofIoredis(io.multi()).lc.add("key", "ann");
  // The commands of node-redis are there as before.
  is<string | null>()(client.get("key"));
}

it("is used as an ES module and as a CommonJS module", async () => {
  if (isCluster) return;
  assert.deepEqual(await (await import("./module.mjs")).used(), [1, 1]);
  assert.deepEqual(await createRequire(import.meta.url)("./common.cjs").used(), [0, 0]);
});

it("is small, and has no dependencies", () => {
  const archive = process.env["ROLLCALL_ARCHIVE"]!;
  assert.ok(statSync(archive).size < 60_000);
  const names = execFileSync("tar", ["--list", "--file", archive], { encoding: "utf8" }).trim().split("\n");
  const others = names.filter((name) => !/^package\/dist\/[\w-]+\.(d\.ts|js)$/.test(name));
  assert.deepEqual(others.map((name) => name.replace("package/", "")).sort(), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
  const { dependencies, peerDependenciesMeta } = createRequire(import.meta.url)("rollcall-redis/package.json");
  assert.deepEqual([dependencies, Object.keys(peerDependenciesMeta)], [undefined, ["ioredis", "redis"]]);
});
