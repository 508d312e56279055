/** An error of the server in place of the reply for an item: the filter is full. The item is not added. */
export class ItemError extends Error {
  override readonly name = "ItemError";
}

/** 1: added; 0: known already; -1: rejected. */
export type Outcome = 1 | 0 | -1;

export interface Room {
  outcomes: Outcome[];
  /** How many more new items fit. */
  room: number;
  /** Seconds until new items fit; null if they never will. */
  retryAfter: number | null;
}

export interface Estimate {
  count: number;
  /** In members; 0 while exact. */
  standardError: number;
}

/** The members since the begin of a slice, in Unix seconds. */
export interface Slice extends Estimate {
  begin: number;
}

export interface Aged<Text> {
  member: Text;
  /** Seconds since the slice began in which the member was last added. */
  age: number;
}

/** A part of a dump. The last part has the iterator 0 and no bytes. */
export interface Chunk {
  iterator: number;
  chunk: Buffer;
}

export interface FilterInfo {
  Capacity: number;
  Size: number;
  "Number of filters": number;
  "Number of items inserted": number;
  "Expansion rate": number | null;
}

export interface CounterInfo {
  "Error rate": number;
  "Exact limit": number;
  "Exact bytes": number;
  Mode: "exact" | "estimate";
  Size: number;
  Count: number;
  "Standard error": number;
  Window: number | null;
  Slices: number | null;
  Slice: number | null;
  Clock: "system" | "manual" | null;
  Volatile: boolean | null;
}

/** The value of a field of INFO; null where the field does not apply. */
export type Field = number | string | boolean | null;

/** How the text of members is returned, and the field that INFO was asked for. */
export interface Context {
  text(reply: unknown): unknown;
  field?: unknown;
}

/** Reads replies of RESP2 and RESP3, with bulk strings as text or buffers, to the same values. */
export const READERS = {
  ok: (reply: unknown) => {
    if (String(reply) !== "OK") throw unexpected("OK", reply);
    return "OK";
  },
  integer: number,
  boolean,
  booleans: (reply: unknown) => elements(reply).map(boolean),
  added: (reply: unknown) => {
    // With WIDTH `!` stands for the error, once for each item that is not added.
    const full = new ItemError("ERR non scaling filter is full");
    return elements(reply).map((one) => {
      if (one instanceof Error) return new ItemError(one.message);
      return one === "!" ? full : boolean(one);
    });
  },
  outcomes,
  room: (reply: unknown) => {
    const [items, room, seconds] = elements(reply).slice(0, 3);
    const retryAfter = number(seconds);
    return { outcomes: outcomes(items), room: number(room), retryAfter: retryAfter === -1 ? null : retryAfter };
  },
  estimate: (reply: unknown) => {
    const [count, standardError] = elements(reply).map(number);
    return { count, standardError };
  },
  slices: (reply: unknown) =>
    elements(reply).map((slice) => {
      const [begin, count, standardError] = elements(slice).map(number);
      return { begin, count, standardError };
    }),
  members: (reply: unknown, { text }: Context) => elements(reply).map(text),
  ages: (reply: unknown, { text }: Context) =>
    pairs(reply).map(([member, age]) => ({ member: text(member), age: number(age) })),
  texts: (reply: unknown) => elements(reply).map(String),
  chunk: (reply: unknown) => {
    const [iterator, chunk] = elements(reply);
    if (!Buffer.isBuffer(chunk)) {
      throw new TypeError("a chunk is bytes: use client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })");
    }
    return { iterator: number(iterator), chunk };
  },
  filter: rows,
  counter: rows,
  // A map of one pair, or in RESP2 a list of its value. ioredis makes a list of the pair.
  field: (reply: unknown, { field }: Context) =>
    fieldValue(String(field), Array.isArray(reply) ? reply.at(-1) : pairs(reply)[0]?.[1]),
} satisfies Record<string, (reply: unknown, context: Context) => unknown>;

export type Kind = keyof typeof READERS;

function unexpected(expected: string, reply: unknown): TypeError {
  return new TypeError(`unexpected reply: expected ${expected}, got ${String(reply)}`);
}

function number(reply: unknown): number {
  const value = Number(typeof reply === "object" ? String(reply) : reply);
  if (Number.isNaN(value)) throw unexpected("a number", reply);
  return value;
}

function boolean(reply: unknown): boolean {
  const value = number(reply);
  if (value !== 0 && value !== 1) throw unexpected("0 or 1", reply);
  return value === 1;
}

/** The elements of a list. With WIDTH a list is a string with a character for each item. */
function elements(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply;
  if (typeof reply === "string" || Buffer.isBuffer(reply)) return [...reply.toString("latin1")];
  if (reply instanceof Set) return [...reply];
  throw unexpected("a list", reply);
}

function outcomes(reply: unknown): Outcome[] {
  return elements(reply).map((one) => (one === "-" ? -1 : (number(one) as Outcome)));
}

/** The pairs of a map, of a list of pairs, or of a list of names and values in turn. */
function pairs(reply: unknown): [unknown, unknown][] {
  if (reply instanceof Map) return [...reply];
  if (typeof reply !== "object" || reply === null) throw unexpected("a map", reply);
  if (!Array.isArray(reply)) return Object.entries(reply);
  if (Array.isArray(reply[0])) return reply;
  return Array.from({ length: reply.length / 2 }, (_, at) => [reply[2 * at], reply[2 * at + 1]]);
}

function rows(reply: unknown): Record<string, Field> {
  return Object.fromEntries(pairs(reply).map(([label, value]) => [String(label), fieldValue(String(label), value)]));
}

/** The value of a field. In RESP2 a boolean is 1 or 0, and a double is text. */
function fieldValue(name: string, value: unknown): Field {
  if (value === null) return null;
  if (/^(volatile|refresh)$/i.test(name)) return boolean(value);
  const text = String(value);
  return Number.isNaN(Number(text)) ? text : Number(text);
}
