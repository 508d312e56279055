// Tests every command of node-redis' `client.bf`. RedisBloom passes these tests too.

import assert from "node:assert/strict";

import { ErrorReply, RESP_TYPES } from "redis";

import { dumped, inBothProtocols, rejected } from "./connections.js";

const FULL = "ERR non scaling filter is full";

const LABELS = ["Capacity", "Size", "Number of filters", "Number of items inserted", "Expansion rate"];

/** The client's info as a plain object, after a look at its types: numbers, and null for the rate of NONSCALING. */
async function info(client, key) {
  const found = await client.bf.info(key);
  assert.deepEqual(Object.keys(found), LABELS);
  for (const [name, value] of Object.entries(found)) {
    assert.ok(typeof value === "number" || (name === "Expansion rate" && value === null), name);
  }
  return { ...found };
}

inBothProtocols("bloom", (test) => {
  test("reserve and info", async ({ client }, key) => {
    assert.equal(await client.bf.reserve(key(), 0.001, 1000), "OK");
    const found = await info(client, key());
    assert.ok(found.Size > 1000);
    assert.deepEqual(LABELS.map((label) => found[label]), [1000, found.Size, 1, 0, 2]);
    await rejected("ERR item exists", () => client.bf.reserve(key(), 0.001, 1000));
    assert.equal(await client.bf.reserve(key("rare"), 1e-7, 100), "OK"); // is sent as 1e-7
  });

  test("info as a Map", async ({ client }, key) => {
    await client.bf.add(key(), "ann");
    const found = await client.withTypeMapping({ [RESP_TYPES.MAP]: Map }).bf.info(key());
    assert.ok(found instanceof Map);
    assert.deepEqual(Object.fromEntries(found), await info(client, key()));
  });

  test("expansion", async ({ client }, key) => {
    assert.equal(await client.bf.reserve(key(), 0.01, 10, { EXPANSION: 4 }), "OK");
    for (let start = 0; start < 50; start += 10) {
      await client.bf.mAdd(key(), Array.from({ length: 10 }, (_, at) => String(start + at)));
    }
    const found = await info(client, key());
    assert.deepEqual([found["Expansion rate"], found["Number of filters"], found.Capacity], [4, 2, 50]);
    assert.equal(found["Number of items inserted"], await client.bf.card(key()));
  });

  test("a filter that does not grow", async ({ client, RESP }, key) => {
    assert.equal(await client.bf.reserve(key(), 0.0001, 3, { NONSCALING: true }), "OK");
    assert.equal((await info(client, key()))["Expansion rate"], null);
    const added = await client.bf.mAdd(key(), ["a", "b", "c", "d", "e"]);
    assert.deepEqual(added.slice(0, 3), [true, true, true]);
    assert.equal(added.length, 4);
    if (RESP === 3) {
      assert.ok(added[3] instanceof ErrorReply);
      assert.equal(added[3].message, FULL);
    } else {
      assert.equal(added[3], false); // the client's value for elements other than 1
      const [first, error, ...rest] = await client.sendCommand(["BF.MADD", key(), "a", "d", "e"]);
      assert.equal(first, 0);
      assert.ok(error instanceof ErrorReply);
      assert.equal(error.message, FULL);
      assert.deepEqual(rest, []);
    }
    await rejected(FULL, () => client.bf.add(key(), "d"));
    assert.equal((await client.bf.insert(key(), ["a", "d", "e"])).length, 2);
    assert.equal(await client.bf.add(key(), "a"), false);
  });

  test("add and exists", async ({ client }, key) => {
    assert.equal(await client.bf.exists(key(), "ann"), false);
    assert.equal(await client.bf.add(key(), "ann"), true);
    assert.equal(await client.bf.add(key(), "ann"), false);
    assert.equal(await client.bf.exists(key(), "ann"), true);
    assert.equal(await client.bf.exists(key(), "ben"), false);
  });

  test("mAdd and mExists", async ({ client }, key) => {
    assert.deepEqual(await client.bf.mExists(key(), ["ann", "ben"]), [false, false]);
    assert.deepEqual(await client.bf.mAdd(key(), "ann"), [true]);
    assert.deepEqual(await client.bf.mAdd(key(), ["ann", "ben", "ben"]), [false, true, false]);
    assert.deepEqual(await client.bf.mExists(key(), ["ann", "cem", "ben"]), [true, false, true]);
    assert.deepEqual(await client.bf.mExists(key(), "ann"), [true]);
  });

  test("items are any bytes", async ({ client }, key) => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    const items = ["", "\r\n", "déjà vu", Buffer.from([0, 255, 254]), every];
    assert.deepEqual(await client.bf.mAdd(key(), items), [true, true, true, true, true]);
    const asked = [...items, Buffer.from([255])];
    assert.deepEqual(await client.bf.mExists(key(), asked), [true, true, true, true, true, false]);
  });

  test("insert", async ({ client }, key) => {
    await rejected("ERR not found", () => client.bf.insert(key(), ["a"], { NOCREATE: true }));
    const options = { CAPACITY: 700, ERROR: 0.01, EXPANSION: 3 };
    assert.deepEqual(await client.bf.insert(key(), ["a", "b", "a"], options), [true, true, false]);
    const found = await info(client, key());
    assert.deepEqual([found.Capacity, found["Expansion rate"], found["Number of items inserted"]], [700, 3, 2]);
    const other = { CAPACITY: 5, ERROR: 0.5, NOCREATE: true };
    assert.deepEqual(await client.bf.insert(key(), ["b", "c"], other), [false, true]);
    assert.equal((await info(client, key())).Capacity, 700);
    assert.deepEqual(await client.bf.insert(key("defaults"), "a"), [true]);
    assert.equal((await info(client, key("defaults")))["Expansion rate"], 2);
  });

  test("insert with every option", async ({ client }, key) => {
    const options = { CAPACITY: 9, ERROR: 0.1, EXPANSION: 3, NONSCALING: true };
    assert.deepEqual(await client.bf.insert(key(), ["a"], options), [true]);
    assert.deepEqual(await client.bf.insert(key(), ["a", "b"], { ...options, NOCREATE: true }), [false, true]);
    const found = await info(client, key());
    assert.deepEqual([found.Capacity, found["Expansion rate"]], [9, null]);
    // BF.RESERVE rejects a filter that has an expansion and cannot grow. BF.INSERT accepts it.
    await rejected(/nonscaling/i, () => client.bf.reserve(key("other"), 0.1, 9, { EXPANSION: 3, NONSCALING: true }));
  });

  test("card", async ({ client }, key) => {
    assert.equal(await client.bf.card(key()), 0);
    await client.bf.mAdd(key(), ["a", "b", "a"]);
    assert.equal(await client.bf.card(key()), 2);
  });

  test("scanDump and loadChunk", async ({ client, binary }, key) => {
    // The filter has 4 MB, which this module dumps in several chunks of at most 1 MiB.
    await client.bf.reserve(key(), 0.0001, 1_500_000);
    const items = Array.from({ length: 20_000 }, (_, at) => `user:${at}`);
    await client.bf.mAdd(key(), items);
    const chunks = await dumped((iterator) => binary.bf.scanDump(key(), iterator));
    assert.ok(chunks.length >= 2);
    for (const { iterator, chunk } of chunks) {
      assert.equal(String(await binary.bf.loadChunk(key("copy"), iterator, chunk)), "OK");
    }
    assert.ok((await client.bf.mExists(key("copy"), items)).every((found) => found === true));
    assert.deepEqual(await info(client, key("copy")), await info(client, key()));
    assert.deepEqual(await dumped((iterator) => binary.bf.scanDump(key("copy"), iterator)), chunks);
  });

  test("in a transaction", async ({ client }, key) => {
    const transaction = client.multi().bf.add(key(), "a").bf.mAdd(key(), ["a", "b"]);
    transaction.bf.exists(key(), "c").bf.card(key());
    assert.deepEqual(await transaction.exec(), [true, [false, true], false, 2]);
  });

  test("errors", async ({ client }, key) => {
    const text = key("text");
    await client.set(text, "value");
    for (const call of [
      () => client.bf.add(text, "a"),
      () => client.bf.mAdd(text, ["a"]),
      () => client.bf.insert(text, ["a"]),
      () => client.bf.card(text),
      () => client.bf.info(text),
      () => client.bf.scanDump(text, 0),
    ]) {
      await rejected(/^WRONGTYPE /, call);
    }
    const missing = key("missing");
    await rejected("ERR not found", () => client.bf.info(missing));
    await rejected(/./, () => client.bf.scanDump(missing, 0));
    await rejected(/./, () => client.bf.loadChunk(missing, 1, "not a header"));
    const wrong = [[0, 100], [1, 100], ["much", 100], [0.01, 0], [0.01, -1], [0.01, "many"]];
    for (const [rate, capacity] of wrong) {
      await rejected(/./, () => client.bf.reserve(missing, rate, capacity));
    }
    assert.equal(await client.exists(missing), 0);
  });
});
