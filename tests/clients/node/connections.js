// Connects once for each protocol, and gives every test its own keys.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { createClient, ErrorReply, RESP_TYPES } from "redis";

const BUFFERS = { [RESP_TYPES.BLOB_STRING]: Buffer };
const url = process.env.ROLLCALL_URL;

/** What one test gets to work with. */
class Connection {
  constructor(RESP, client) {
    this.RESP = RESP;
    this.client = client;
    /** The same connection, with bulk strings as buffers: dumps are binary. */
    this.binary = client.withTypeMapping(BUFFERS);
  }

  /** The generic call with bulk strings as buffers: it takes no notice of what `withTypeMapping` was told. */
  binaryCall(...words) {
    return this.client.sendCommand(words, { typeMapping: BUFFERS });
  }

  /** How a double of the server arrives in the generic call. */
  double(value) {
    return this.RESP === 3 ? value : String(value);
  }

  /** All lines of an INFO of the generic call: a map in RESP3, a flat array in RESP2. */
  lines(reply) {
    if (this.RESP === 3) return { ...reply };
    assert.ok(Array.isArray(reply));
    const pairs = Array.from({ length: reply.length / 2 }, (_, at) => reply.slice(2 * at, 2 * at + 2));
    return Object.fromEntries(pairs);
  }
}

/**
 * Runs the tests that `add` defines with `test(name, body)`, in RESP2 and in RESP3. `body` gets a connection and a
 * function that makes keys.
 */
export function inBothProtocols(title, add) {
  for (const RESP of [2, 3]) {
    describe(`${title}, RESP${RESP}`, () => {
      const client = createClient({ url, RESP, socket: { reconnectStrategy: false, connectTimeout: 60_000 } });
      client.on("error", (error) => assert.fail(error));
      before(() => client.connect());
      after(() => client.close());
      add((name, body) => {
        const key = (part = "key") => `${title}:${RESP}:${name}:${part}`;
        it(name, () => body(new Connection(RESP, client), key));
      });
    });
  }
}

/** That `call` is rejected by an error of the server whose text is `text`, a string or a pattern. */
export async function rejected(text, call) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof ErrorReply, `${error}`);
    if (text instanceof RegExp) assert.match(error.message, text);
    else assert.equal(error.message, text);
    return true;
  });
}

/** All chunks of a dump, which `next(iterator)` gives one by one as { iterator, chunk }. */
export async function dumped(next) {
  const chunks = [];
  for (let iterator = 0; ; ) {
    const reply = await next(iterator);
    assert.equal(typeof reply.iterator, "number");
    assert.ok(Buffer.isBuffer(reply.chunk));
    if (reply.iterator === 0) {
      assert.equal(reply.chunk.length, 0);
      return chunks;
    }
    chunks.push(reply);
    iterator = reply.iterator;
  }
}
