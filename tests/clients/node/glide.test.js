// Tests every command with the generic call of Valkey GLIDE, in both protocols. GLIDE has no methods for filters.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";

import { Batch, Decoder, GlideClient, Logger, ProtocolVersion, RequestError } from "@valkey/valkey-glide";

const rows = JSON.parse(readFileSync(process.env.ROLLCALL_CLIENTS_COMMANDS, "utf8")).filter((row) => row.length === 2);
const { hostname: host, port } = new URL(process.env.ROLLCALL_URL);

/** A reply of commands.json as this protocol has it. GLIDE gives maps as lists of { key, value }. */
function expected(reply, RESP) {
  if (typeof reply === "boolean") return RESP === 3 ? reply : Number(reply);
  if (Array.isArray(reply)) return reply.map((element) => expected(element, RESP));
  if (reply === null || typeof reply !== "object") return reply;
  if (reply.sorted) return reply.sorted;
  if (reply.double) return RESP === 3 ? Number(reply.double) : reply.double;
  const lines = Object.entries(reply.map ?? reply.field).map(([key, value]) => ({ key, value: expected(value, RESP) }));
  if (RESP === 3) return lines;
  return lines.flatMap(({ key, value }) => (reply.map ? [key, value] : [value]));
}

/** Texts for buffers, and "any" where the pattern has it. */
function found(value, pattern) {
  if (pattern === "any") return "any";
  if (Buffer.isBuffer(value)) return value.toString("latin1");
  if (Array.isArray(value)) return value.map((element, at) => found(element, pattern?.[at]));
  if (value === null || typeof value !== "object") return value;
  return { key: found(value.key), value: found(value.value, pattern?.value) };
}

// Without this, GLIDE prints every error of the server.
Logger.setLoggerConfig("off");

for (const RESP of [2, 3]) {
  describe(`glide, RESP${RESP}`, () => {
    let client;
    const protocol = RESP === 3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
    // In milliseconds. A busy machine may exceed the default of 250.
    const options = { addresses: [{ host, port: Number(port) }], protocol, requestTimeout: 60_000 };
    before(async () => (client = await GlideClient.createClient(options)));
    after(() => client.close());
    const key = (name) => `glide:${RESP}:${name}`;
    const call = (...words) => client.customCommand(words, { decoder: Decoder.Bytes });

    it("every command", async () => {
      for (const [words, reply] of rows) {
        const sent = words.map((word) => (word[0] === "@" ? key(word.slice(1)) : Buffer.from(word, "latin1")));
        if (reply?.error) {
          await assert.rejects(call(...sent),
            (error) => error instanceof RequestError && error.message.includes(reply.error));
          continue;
        }
        const wanted = expected(reply, RESP);
        const value = found(await call(...sent), wanted);
        if (reply?.sorted) value.sort();
        assert.deepEqual(value, wanted, words.join(" "));
      }
    });

    it("the error of a full filter is the whole reply, and what was added before it stays", async () => {
      await call("BF.RESERVE", key("full"), "0.001", "2", "NONSCALING");
      await assert.rejects(call("BF.MADD", key("full"), "a", "b", "c", "d"), { message: /non scaling filter is full/ });
      assert.equal(await call("BF.CARD", key("full")), 2);
    });

    it("chunks", async () => {
      await call("BF.RESERVE", key("BF"), "0.0001", "1500000");
      for (const family of ["BF", "LC"]) {
        const [source, copy] = [key(family), key(`${family}:copy`)];
        await call(`${family}.INSERT`, source, "ITEMS", ...Array.from({ length: 5000 }, (_, at) => String(at)));
        let [iterator, chunk] = await call(`${family}.SCANDUMP`, source, "0");
        let chunks = 0;
        for (; iterator !== 0; chunks += 1) {
          assert.equal(await call(`${family}.LOADCHUNK`, copy, String(iterator), chunk), "OK");
          [iterator, chunk] = await call(`${family}.SCANDUMP`, source, String(iterator));
        }
        assert.ok(chunks > (family === "BF" ? 1 : 0));
        const dumps = await Promise.all([source, copy].map((name) => client.dump(name)));
        assert.deepEqual(dumps[1], dumps[0]);
      }
    });

    it("a transaction", async () => {
      const batch = new Batch(true).customCommand(["BF.ADD", key("f"), "a"])
        .customCommand(["LC.ADD", key("c"), "a", "b"]);
      const [added, fresh, error] = await client.exec(batch.customCommand(["LC.COUNT", key("f")]), false);
      assert.deepEqual([added, fresh], [RESP === 3 ? true : 1, 2]);
      assert.match(error.message, /^WRONGTYPE/);
    });
  });
}
