// Every command in every variant: the cases of tests/clients/commands.json, which all clients share, and some more.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, describe, it } from "node:test";
import { modules } from "rollcall-redis/node-redis";
import { type Family, type Variant, VARIANTS } from "./variants.js";

type Case = [words: string[], reply: any];

const shared: Case[] = JSON.parse(readFileSync(process.env["ROLLCALL_CASES"]!, "utf8"));
const CASES: Case[] = [
  ...shared.filter((row) => row.length === 2),
  [["BF.QUERY", "@seen", "ITEMS", "ann", "zoe"], [true, false]],
  [["LC.ADMIT", "@joined", "LIMIT", "2", "WITHROOM", "ITEMS", "dan", "eva"], [[1, -1], 0, -1]],
  [["LC.ADMIT", "@packed-members", "LIMIT", "2", "DRYRUN", "WIDTH", "3", "ITEMS", "annzoe"], "0-"],
  [["LC.INFO", "@joined", "VOLATILE"], { field: { Volatile: null } }],
  [["LC.INSERT", "@leases", "WINDOW", "60", "VOLATILE", "ITEMS", "ann"], 1],
  [["LC.INFO", "@leases", "VOLATILE"], { field: { Volatile: true } }],
  [["LC.INFO", "@leases", "CLOCK"], { field: { Clock: "system" } }],
  [["LC.MEMBERS", "@online", "WITHAGES"], "any"],
  [["LC.ADD", "@states", "QUEUED"], 1],
  [["LC.MEMBERS", "@states"], ["QUEUED"]],
  [["LC.QUERY", "@online", "SINCE", "3600", "ITEMS", "ann", "cem"], [false, true]],
  [["LC.DIFF", "2", "@online", "@online", "SINCE", "-", "3600"], ["ann"]],
  [["LC.DIFFCARD", "2", "@online", "@online", "SINCE", "-", "3600"], [1, { double: "0" }]],
  [["BF.INFO", "@notified", "REFRESH"], { field: { Refresh: false } }],
  [["BF.INFO", "@notified", "FPR"], "any"],
  [["BF.INFO", "@notified", "LAYOUT"], { field: { Layout: "lines" } }],
];
const FLAGS = new Set(["ALL", "DRYRUN", "NOCREATE", "NONSCALING", "MANUAL", "VOLATILE", "REFRESH"]);
const LISTS = ["LC.ADD", "LC.REM", "BF.MADD", "BF.MEXISTS", "LC.MEXISTS", "BF.MERGE", "LC.MERGE"];
const NUMBERS = ["EXPANSION", "CAPACITY", "WIDTH", "LIMIT", "ERROR", "SEED", "EXACT", "WINDOW", "SLICES", "SINCE"];
const called = new Set<string>();

const bytes = (text: string) => (text.startsWith("@") ? text.slice(1) : Buffer.from(text, "latin1"));

function optionsOf(words: string[]): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (let at = 0; at < words.length; ) {
    const token = words[at++]!;
    if (FLAGS.has(token)) options[token] = true;
    else if (words.length - at > 1 && token === "SINCE") options[token] = words.slice(at, (at += 2)).map(numberOr);
    else options[token] = NUMBERS.includes(token) ? numberOr(words[at++]!) : words[at++];
  }
  return options;
}

const numberOr = (text: string) => (text === "-" ? text : Number(text));

/** The method for a command and its arguments, or undefined if types do not allow the command. */
function methodOf([command, ...words]: string[]): { family: Family; method: string; args: unknown[] } | undefined {
  const [family, suffix] = command!.toLowerCase().split(".") as [Family, string];
  const variant = { WITHROOM: "admitwithroom", WITHAGES: "memberswithages" };
  const special = Object.entries(variant).find(([token]) => words.includes(token));
  const sought = special?.[1] ?? (suffix === "info" && words.length > 1 ? "infofield" : suffix);
  const method = Object.keys(modules[family]).find((name) => /^[a-z]/.test(name) && name.toLowerCase() === sought)!;
  const rest = words.filter((word) => word !== special?.[0]);
  const made = (...args: unknown[]) => ({ family, method, args });
  if (/^(union|inter|diff)/.test(suffix)) {
    const end = 1 + Number(rest[0]);
    return made(rest.slice(1, end).map(bytes), optionsOf(rest.slice(end)));
  }
  const at = rest.indexOf("ITEMS");
  if (at > 0) return made(bytes(rest[0]!), rest.slice(at + 1).map(bytes), optionsOf(rest.slice(1, at)));
  if (LISTS.includes(command!) || suffix === "mergedump") return made(bytes(rest[0]!), rest.slice(1).map(bytes));
  if (suffix === "count") return made(rest.map(bytes));
  if (command === "BF.RESERVE") return made(bytes(rest[0]!), ...rest.slice(1, 3).map(Number), optionsOf(rest.slice(3)));
  if (suffix === "reserve" || suffix === "members") {
    return rest[1] === "1000000" ? undefined : made(bytes(rest[0]!), optionsOf(rest.slice(1)));
  }
  if (suffix === "advance" || suffix === "countsince") return made(bytes(rest[0]!), Number(rest[1]));
  return made(bytes(rest[0]!), ...rest.slice(1).map(sought === "infofield" ? String : bytes));
}

const isMap = (reply: any) => reply?.map && !Array.isArray(reply);

/** The value that a method returns for a reply of the table. */
function valueOf(reply: any, method: string): unknown {
  if (reply?.double) return Number(reply.double);
  if (reply?.field) return valueOf(Object.values(reply.field)[0], method);
  if (isMap(reply)) {
    return Object.fromEntries(Object.entries(reply.map).map(([label, one]) => [label, valueOf(one, method)]));
  }
  if (reply?.sorted) return valueOf(reply.sorted, method);
  if (method === "history") {
    return reply.map((slice: unknown[]) => {
      const [begin, count, standardError] = slice.map((one) => valueOf(one, ""));
      return { begin, count, standardError };
    });
  }
  if (method.endsWith("Card")) return { count: reply[0], standardError: valueOf(reply[1], "") };
  if (method === "admitWithRoom") {
    return { outcomes: valueOf(reply[0], "admit"), room: reply[1], retryAfter: reply[2] === -1 ? null : reply[2] };
  }
  if (method === "admit" && typeof reply === "string") return [...reply].map((one) => (one === "-" ? -1 : Number(one)));
  if (["insert", "query"].includes(method) && typeof reply === "string") return [...reply].map((one) => one === "1");
  if (["members", "union", "inter", "diff"].includes(method)) return reply.map(bytes);
  return reply;
}

async function runs(variant: Variant, [words, reply]: Case): Promise<void> {
  const found = methodOf(words);
  if (!found) return;
  const { family, method, args } = found;
  called.add(`${family}.${method}`);
  const got = variant.invoke(family, method, args);
  if (reply?.error) {
    await assert.rejects(got, (error: Error) => error.message.includes(reply.error));
    return;
  }
  const value: any = await got;
  if (reply === "any") return;
  if (isMap(reply)) value.Size = "any";
  if (reply?.sorted) value.sort(variant.isText ? undefined : Buffer.compare);
  const expected: any = valueOf(reply, method);
  assert.deepEqual(value, variant.isText && Buffer.isBuffer(expected?.[0]) ? expected.map(String) : expected);
}

for (const [title, made] of Object.entries(VARIANTS)) {
  describe(title, async () => {
    const variant = await made(`{${title}}:`);
    after(() => variant.close());

    it("replies as the table says", async () => {
      for (const one of CASES) {
        try {
          await runs(variant, one);
        } catch (error) {
          throw new Error(`${one[0].join(" ")}: ${error}`, { cause: error });
        }
      }
    });

    it("returns ages, and an error inside a reply", async () => {
      const ages: any = await variant.invoke("lc", "membersWithAges", ["leases"]);
      assert.equal(ages.length, 1);
      assert.deepEqual(Object.keys(ages[0]), ["member", "age"]);
      assert.deepEqual(ages[0].member, variant.isText ? "ann" : Buffer.from("ann"));
      assert.ok(ages[0].age >= 0 && ages[0].age < 60);

      await variant.invoke("bf", "reserve", ["full", 0.01, 2, { NONSCALING: true }]);
      for (const [method, args, replies] of [
        ["mAdd", [["a", "b", "c", "d"]], [true, true, "ERR non scaling filter is full"]],
        ["insert", ["bad", { WIDTH: 1 }], [false, false, "ERR non scaling filter is full"]],
      ] as const) {
        const got = (await variant.invoke("bf", method, ["full", ...args])) as (boolean | Error)[];
        assert.deepEqual(got.map((one) => (one instanceof Error ? one.message : one)), replies);
        assert.equal((got[2] as Error).name, "ItemError");
      }
    });

    it("copies by chunks", async () => {
      if (variant.isText) {
        await variant.invoke("lc", "add", ["dumped lc", "ann"]);
        await assert.rejects(variant.invoke("lc", "scanDump", ["dumped lc", 0]), /a chunk is bytes/);
        return;
      }
      for (const [family, count] of [["lc", "count"], ["bf", "card"]] as const) {
        const numbers = Array.from({ length: 3000 }, (_, at) => `member ${at}`);
        await variant.invoke(family, family === "lc" ? "add" : "mAdd", ["dumped", numbers].with(0, `dumped ${family}`));
        let next = 0;
        for (;;) {
          const { iterator, chunk }: any = await variant.invoke(family, "scanDump", [`dumped ${family}`, next]);
          assert.ok(Buffer.isBuffer(chunk));
          if (iterator === 0) break;
          assert.equal(await variant.invoke(family, "loadChunk", [`copy ${family}`, iterator, chunk]), "OK");
          next = iterator;
        }
        called.add(`${family}.scanDump`).add(`${family}.loadChunk`);
        const counts = [`dumped ${family}`, `copy ${family}`].map((key) => variant.invoke(family, count, [key]));
        const [first, second] = await Promise.all(counts);
        assert.equal(second, first);
      }
    });
  });
}

it("every method has been called", () => {
  const methods = (["bf", "lc"] as const).flatMap((family) => {
    return Object.keys(modules[family]).filter((name) => /^[a-z]/.test(name)).map((name) => `${family}.${name}`);
  });
  assert.deepEqual([...called].sort(), methods.sort());
});
