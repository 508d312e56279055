// Tests commands without a method in node-redis, by its generic call: LC.*, BF.MERGE, BF.CLEAR, BF.DEBUG, and
// windows.

import assert from "node:assert/strict";

import { dumped, inBothProtocols, rejected } from "./connections.js";

inBothProtocols("generic", (test) => {
  test("LC.RESERVE", async ({ client, RESP }, key) => {
    const reserve = ["LC.RESERVE", key(), "ERROR", "0.005", "EXACT", "10", "SEED", "7"];
    assert.equal(await client.sendCommand(reserve), "OK");
    await rejected("ERR item exists", () => client.sendCommand(reserve));
    const limit = await client.sendCommand(["LC.INFO", key(), "EXACT"]);
    assert.deepEqual(RESP === 3 ? { ...limit } : limit, RESP === 3 ? { "Exact limit": 10 } : [10]);
    const rate = await client.sendCommand(["LC.INFO", key(), "ERROR"]);
    assert.deepEqual(RESP === 3 ? { ...rate } : rate, RESP === 3 ? { "Error rate": 0.005 } : ["0.005"]);
  });

  test("LC.ADD, LC.INSERT and LC.MEMBERS", async (connection, key) => {
    const { client } = connection;
    const bytes = Buffer.from([0, 255]);
    assert.equal(await client.sendCommand(["LC.ADD", key(), "ann", "ben", bytes, "ann"]), 3);
    assert.equal(await client.sendCommand(["LC.INSERT", key(), "NOCREATE", "ITEMS", "ben", "cem"]), 1);
    const members = await connection.binaryCall("LC.MEMBERS", key());
    assert.deepEqual(members.sort(Buffer.compare), [bytes, ...["ann", "ben", "cem"].map((name) => Buffer.from(name))]);
    await rejected("ERR not found", () => client.sendCommand(["LC.INSERT", key("other"), "NOCREATE", "ITEMS", "ann"]));
    const options = ["ERROR", "0.02", "EXACT", "5", "SEED", "1"];
    assert.equal(await client.sendCommand(["LC.INSERT", key("other"), ...options, "ITEMS", "ann"]), 1);
  });

  test("LC.COUNT, LC.DIFFCARD and LC.MERGE", async (connection, key) => {
    const { client } = connection;
    await client.sendCommand(["LC.ADD", key("received"), "ann", "ben", "cem"]);
    await client.sendCommand(["LC.ADD", key("read"), "ann", "eva"]);
    assert.equal(await client.sendCommand(["LC.COUNT", key("received")]), 3);
    assert.equal(await client.sendCommand(["LC.COUNT", key("received"), key("read")]), 4);
    assert.equal(await client.sendCommand(["LC.COUNT", key("missing")]), 0);
    const difference = await client.sendCommand(["LC.DIFFCARD", "2", key("received"), key("read")]);
    assert.deepEqual(difference, [2, connection.double(0)]);
    assert.equal(await client.sendCommand(["LC.MERGE", key("union"), key("received"), key("read")]), "OK");
    assert.equal(await client.sendCommand(["LC.COUNT", key("union")]), 4);
  });

  test("estimates", async (connection, key) => {
    const { client } = connection;
    const members = Array.from({ length: 20_000 }, (_, at) => `user:${at}`);
    await client.sendCommand(["LC.ADD", key(), ...members]);
    await client.sendCommand(["LC.ADD", key("half"), ...members.slice(0, 10_000)]);
    const count = await client.sendCommand(["LC.COUNT", key()]);
    assert.ok(Math.abs(count - 20_000) < 20_000 * 4 * 0.01, `${count}`);
    const [difference, error] = await client.sendCommand(["LC.DIFFCARD", "2", key(), key("half")]);
    assert.equal(typeof difference, "number");
    assert.equal(typeof error, typeof connection.double(0.5));
    assert.ok(Math.abs(difference - 10_000) < 4 * Number(error), `${difference}, ${error}`);
    await rejected(/counter holds an estimate/, () => client.sendCommand(["LC.MEMBERS", key()]));
  });

  test("LC.INFO", async (connection, key) => {
    const { client } = connection;
    await client.sendCommand(["LC.ADD", key(), "ann", "ben"]);
    const { Size, ...rest } = connection.lines(await client.sendCommand(["LC.INFO", key()]));
    assert.ok(Size > 0);
    assert.deepEqual(rest, {
      "Error rate": connection.double(0.01),
      "Exact limit": 250,
      "Exact bytes": 16_384,
      Mode: "exact",
      Count: 2,
      "Standard error": connection.double(0),
      Window: null,
      Slices: null,
      Slice: null,
      Clock: null,
      Volatile: null,
    });
    await rejected("ERR not found", () => client.sendCommand(["LC.INFO", key("missing")]));
  });

  test("LC.SCANDUMP and LC.LOADCHUNK", async (connection, key) => {
    const { client } = connection;
    await client.sendCommand(["LC.ADD", key(), ...Array.from({ length: 5000 }, (_, at) => String(at))]);
    const dump = (name) =>
      dumped(async (at) => {
        const [iterator, chunk] = await connection.binaryCall("LC.SCANDUMP", name, String(at));
        return { iterator, chunk };
      });
    const chunks = await dump(key());
    for (const { iterator, chunk } of chunks) {
      assert.equal(await client.sendCommand(["LC.LOADCHUNK", key("copy"), String(iterator), chunk]), "OK");
    }
    assert.equal(await client.sendCommand(["LC.COUNT", key("copy")]), await client.sendCommand(["LC.COUNT", key()]));
    assert.deepEqual(await dump(key("copy")), chunks);
  });

  test("another type", async ({ client }, key) => {
    await client.set(key(), "value");
    await rejected(/^WRONGTYPE /, () => client.sendCommand(["LC.ADD", key(), "ann"]));
    await rejected(/^WRONGTYPE /, () => client.sendCommand(["LC.COUNT", key()]));
  });

  test("BF.MERGE, BF.DEBUG and BF.CLEAR", async ({ client }, key) => {
    await client.bf.mAdd(key("one"), ["ann", "ben"]);
    await client.bf.mAdd(key("other"), ["cem"]);
    assert.equal(await client.sendCommand(["BF.MERGE", key("union"), key("one"), key("other")]), "OK");
    assert.deepEqual(await client.bf.mExists(key("union"), ["ann", "cem", "eva"]), [true, true, false]);
    const debug = await client.sendCommand(["BF.DEBUG", key("union")]);
    assert.deepEqual(debug.map((line) => typeof line), ["string", "string"]);
    assert.equal(await client.sendCommand(["BF.CLEAR", key("union")]), "OK");
    assert.equal(await client.bf.card(key("union")), 0);
  });

  test("a filter with a window, made by the generic call", async (connection, key) => {
    const { client } = connection;
    const window = ["WINDOW", "86400", "MANUAL", "SLICES", "4"];
    assert.equal(await client.sendCommand(["BF.RESERVE", key(), "0.001", "1000", ...window]), "OK");
    assert.equal(await client.bf.add(key(), "ann"), true);
    assert.equal(await client.bf.add(key(), "ann"), false);
    assert.equal(await client.sendCommand(["BF.ADVANCE", key(), "4"]), "OK");
    assert.deepEqual(await client.bf.mAdd(key(), ["ann", "ben", "cem"]), [false, true, true]);
    assert.deepEqual(await client.bf.insert(key(), ["cem", "dan"]), [false, true]);
    assert.equal(await client.bf.exists(key(), "ann"), true);
    assert.equal(await client.bf.card(key()), 4);
    assert.equal(await client.sendCommand(["BF.ADVANCE", key(), "5"]), "OK");
    assert.deepEqual(await client.bf.mExists(key(), ["ann", "ben", "dan"]), [false, true, true]);
    assert.equal(await client.bf.card(key()), 3);
    const info = await client.bf.info(key());
    assert.deepEqual([info.Capacity, info["Number of items inserted"]], [1000, 3]);
    assert.equal(Object.keys(info).length, 5);
    const slice = await client.sendCommand(["BF.INFO", key(), "SLICE"]);
    assert.deepEqual(connection.RESP === 3 ? { ...slice } : slice, connection.RESP === 3 ? { Slice: 5 } : [5]);
    const chunks = await dumped((iterator) => connection.binary.bf.scanDump(key(), iterator));
    for (const { iterator, chunk } of chunks) {
      assert.equal(await client.bf.loadChunk(key("copy"), iterator, chunk), "OK");
    }
    assert.deepEqual(await client.bf.mExists(key("copy"), ["ann", "ben", "dan"]), [false, true, true]);
  });

  test("a counter with a window", async (connection, key) => {
    const { client } = connection;
    const window = ["WINDOW", "86400", "MANUAL", "SLICES", "4"];
    assert.equal(await client.sendCommand(["LC.RESERVE", key(), ...window]), "OK");
    assert.equal(await client.sendCommand(["LC.ADD", key(), "ann", "ben"]), 2);
    assert.equal(await client.sendCommand(["LC.ADVANCE", key(), "4"]), "OK");
    assert.equal(await client.sendCommand(["LC.ADD", key(), "ben", "cem"]), 1);
    assert.equal(await client.sendCommand(["LC.COUNT", key()]), 3);
    assert.equal(await client.sendCommand(["LC.COUNTSINCE", key(), "3600"]), 2);
    const members = await client.sendCommand(["LC.MEMBERS", key(), "SINCE", "3600"]);
    assert.deepEqual(members.sort(), ["ben", "cem"]);
    const rows = [[86_400, 2, 0], [64_800, 2, 0], [43_200, 2, 0], [21_600, 2, 0], [0, 3, 0]];
    const history = await client.sendCommand(["LC.HISTORY", key()]);
    assert.deepEqual(history.map(([begin, count, error]) => [begin, count, Number(error)]), rows);
    const { Window, Slices, Slice, Clock } = connection.lines(await client.sendCommand(["LC.INFO", key()]));
    assert.deepEqual([Window, Slices, Slice, Clock], [86_400, 4, 4, "manual"]);
  });

  test("sets", async (connection, key) => {
    const { client } = connection;
    const [window, plain] = [key("window"), key("plain")];
    const options = ["WINDOW", "86400", "MANUAL", "SLICES", "4"];
    assert.equal(await client.sendCommand(["LC.INSERT", window, ...options, "ITEMS", "ann", "ben"]), 2);
    assert.equal(await client.sendCommand(["LC.ADVANCE", window, "4"]), "OK");
    await client.sendCommand(["LC.ADD", window, "ben", "cem"]);
    await client.sendCommand(["LC.ADD", plain, "cem", "dan"]);
    const [all, late, others] = [["ann", "ben", "cem"], ["ben", "cem"], ["cem", "dan"]];
    for (const [keys, since, first, second] of [
      [[window, plain], [], all, others],
      [[window, plain], ["SINCE", "3600", "-"], late, others],
      [[window, window], ["SINCE", "-", "3600"], all, late],
      [[window, window], ["SINCE", "3600"], late, late],
    ]) {
      for (const [name, members] of [
        ["UNION", [...new Set([...first, ...second])]],
        ["INTER", first.filter((member) => second.includes(member))],
        ["DIFF", first.filter((member) => !second.includes(member))],
      ]) {
        const number = await client.sendCommand([`LC.${name}CARD`, "2", ...keys, ...since]);
        assert.deepEqual(number, [members.length, connection.double(0)]);
        assert.deepEqual((await client.sendCommand([`LC.${name}`, "2", ...keys, ...since])).sort(), members);
      }
    }
    const rejectedOne = ["LC.INTERCARD", "2", window, plain, "SINCE", "3600"];
    await rejected(/has no window of time/, () => client.sendCommand(rejectedOne));
  });
});
