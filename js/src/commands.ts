// The commands: their types and layouts. Written by scripts/node_commands.py.

import type { Aged, Chunk, CounterInfo, Estimate, Field, FilterInfo, ItemError } from "./replies";
import type { Outcome, Room, Slice } from "./replies";
import { row } from "./words";
import type { Apart, Argument, Block, List, OneOf, Spans } from "./words";

export type BfAdmitOptions =
  & { LIMIT: number; ALL?: boolean; DRYRUN?: boolean; CAPACITY?: number; ERROR?: number; EXPANSION?: number; NOCREATE?: boolean; NONSCALING?: boolean; SEED?: number | bigint; LAYOUT?: "lines" | "classic"; WIDTH?: number }
  & Block<{ WINDOW: number }, { SLICES?: number; REFRESH?: boolean } & OneOf<{ MANUAL: boolean; VOLATILE: boolean }>>
  & OneOf<{ EX: number; PX: number; EXAT: number; PXAT: number }>
  & Apart<"VOLATILE", "EX" | "PX" | "EXAT" | "PXAT">
  & Apart<"NONSCALING", "WINDOW">
  & Apart<"LAYOUT", "WINDOW", "lines">;

export type BfInsertOptions =
  & { CAPACITY?: number; ERROR?: number; EXPANSION?: number; NOCREATE?: boolean; NONSCALING?: boolean; SEED?: number | bigint; LAYOUT?: "lines" | "classic"; WIDTH?: number }
  & Block<{ WINDOW: number }, { SLICES?: number; REFRESH?: boolean } & OneOf<{ MANUAL: boolean; VOLATILE: boolean }>>
  & OneOf<{ EX: number; PX: number; EXAT: number; PXAT: number }>
  & Apart<"VOLATILE", "EX" | "PX" | "EXAT" | "PXAT">
  & Apart<"NONSCALING", "WINDOW">
  & Apart<"LAYOUT", "WINDOW", "lines">;

export type BfQueryOptions =
  & { SINCE?: number; WIDTH?: number };

export type BfReserveOptions =
  & { EXPANSION?: number; NONSCALING?: boolean; SEED?: number | bigint; LAYOUT?: "lines" | "classic" }
  & Block<{ WINDOW: number }, { MANUAL?: boolean; SLICES?: number; REFRESH?: boolean }>
  & OneOf<{ EX: number; PX: number; EXAT: number; PXAT: number }>
  & Apart<"NONSCALING", "WINDOW">
  & Apart<"LAYOUT", "WINDOW", "lines">
  & Apart<"NONSCALING", "EXPANSION">;

export interface Filters {
  /** BF.ADD: Adds an item to a Bloom filter; creates the filter if it is missing. */
  add(key: Argument, item: Argument): boolean;
  /** BF.ADMIT: Adds new items to a Bloom filter while it has fewer than a limit. */
  admit(key: Argument, items: List, options: BfAdmitOptions): Outcome[];
  /** BF.ADMIT: Adds new items to a Bloom filter while it has fewer than a limit. */
  admitWithRoom(key: Argument, items: List, options: BfAdmitOptions): Room;
  /** BF.ADVANCE: Moves the window of a Bloom filter on to a slice, or hands it to the clock. */
  advance(key: Argument, to: number | "CLOCK"): "OK";
  /** BF.CARD: Returns the number of items that were added to a Bloom filter. */
  card(key: Argument): number;
  /** BF.CLEAR: Empties a Bloom filter and keeps its parameters and time to live. */
  clear(key: Argument): "OK";
  /** BF.DEBUG: Describes each sub-filter of a Bloom filter. */
  debug(key: Argument): string[];
  /** BF.EXISTS: Returns whether an item may be in a Bloom filter, or is certainly not. */
  exists(key: Argument, item: Argument): boolean;
  /** BF.INFO: Returns the parameters and the state of a Bloom filter. */
  info(key: Argument): FilterInfo;
  /** BF.INFO: Returns the parameters and the state of a Bloom filter. */
  infoField(key: Argument, field: "CAPACITY" | "SIZE" | "FILTERS" | "ITEMS" | "EXPANSION" | "ERROR" | "FPR" | "FILL" | "LAYOUT" | "WINDOW" | "SLICES" | "SLICE" | "CLOCK" | "VOLATILE" | "REFRESH"): Field;
  /** BF.INSERT: Adds items to a Bloom filter; if it is missing, creates it with these options. */
  insert(key: Argument, items: List, options?: BfInsertOptions): (boolean | ItemError)[];
  /** BF.LOADCHUNK: Restores a Bloom filter chunk by chunk, as BF.SCANDUMP gave them. */
  loadChunk(key: Argument, iterator: number, data: Argument): "OK";
  /** BF.MADD: Adds items to a Bloom filter; creates the filter if it is missing. */
  mAdd(key: Argument, items: List): (boolean | ItemError)[];
  /** BF.MERGE: Makes a Bloom filter the union of itself and others of the same parameters. */
  merge(destination: Argument, sources: List): "OK";
  /** BF.MERGEDUMP: Makes a Bloom filter the union of itself and values that DUMP has returned or that files have. */
  mergeDump(destination: Argument, payloads: List): "OK";
  /** BF.MEXISTS: Returns for each item whether it may be in a Bloom filter, or is certainly not. */
  mExists(key: Argument, items: List): boolean[];
  /** BF.QUERY: Returns for each item whether it may be in a Bloom filter, or may have been added in the last seconds. */
  query(key: Argument, items: List, options?: BfQueryOptions): boolean[];
  /** BF.RESERVE: Creates an empty Bloom filter with its own error rate and capacity. */
  reserve(key: Argument, errorRate: number, capacity: number, options?: BfReserveOptions): "OK";
  /** BF.SCANDUMP: Returns the next chunk of a Bloom filter's dump. */
  scanDump(key: Argument, iterator: number): Chunk;
}

export const BF = {
  add: row("BF.ADD", "key item", "boolean", false, false),
  admit: row("BF.ADMIT", "key LIMIT= ALL? DRYRUN? CAPACITY= ERROR= EXPANSION= NOCREATE? NONSCALING? SEED= LAYOUT= WINDOW= MANUAL? VOLATILE? SLICES= REFRESH? EX= PX= EXAT= PXAT= WIDTH= ITEMS items", "outcomes", false, false),
  admitWithRoom: row("BF.ADMIT", "key LIMIT= ALL? DRYRUN? WITHROOM CAPACITY= ERROR= EXPANSION= NOCREATE? NONSCALING? SEED= LAYOUT= WINDOW= MANUAL? VOLATILE? SLICES= REFRESH? EX= PX= EXAT= PXAT= WIDTH= ITEMS items", "room", false, false),
  advance: row("BF.ADVANCE", "key value", "ok", false, false),
  card: row("BF.CARD", "key", "integer", true, false),
  clear: row("BF.CLEAR", "key", "ok", false, false),
  debug: row("BF.DEBUG", "key", "texts", true, false),
  exists: row("BF.EXISTS", "key item", "boolean", true, false),
  info: row("BF.INFO", "key", "filter", true, false),
  infoField: row("BF.INFO", "key value", "field", true, false),
  insert: row("BF.INSERT", "key CAPACITY= ERROR= EXPANSION= NOCREATE? NONSCALING? SEED= LAYOUT= WINDOW= MANUAL? VOLATILE? SLICES= REFRESH? EX= PX= EXAT= PXAT= WIDTH= ITEMS items", "added", false, true),
  loadChunk: row("BF.LOADCHUNK", "key value item", "ok", false, false),
  mAdd: row("BF.MADD", "key items", "added", false, true),
  merge: row("BF.MERGE", "key keys", "ok", false, false),
  mergeDump: row("BF.MERGEDUMP", "key items", "ok", false, false),
  mExists: row("BF.MEXISTS", "key items", "booleans", true, true),
  query: row("BF.QUERY", "key SINCE= WIDTH= ITEMS items", "booleans", true, true),
  reserve: row("BF.RESERVE", "key value value EXPANSION= NONSCALING? SEED= LAYOUT= WINDOW= MANUAL? SLICES= REFRESH? EX= PX= EXAT= PXAT=", "ok", false, false),
  scanDump: row("BF.SCANDUMP", "key value", "chunk", true, false),
};

export type LcAdmitOptions =
  & { LIMIT: number; ALL?: boolean; DRYRUN?: boolean; ERROR?: number; EXACT?: number; BYTES?: number; SEED?: number | bigint; NOCREATE?: boolean; WIDTH?: number }
  & Block<{ WINDOW: number }, { SLICES?: number } & OneOf<{ MANUAL: boolean; VOLATILE: boolean }>>
  & OneOf<{ EX: number; PX: number; EXAT: number; PXAT: number }>
  & Apart<"VOLATILE", "EX" | "PX" | "EXAT" | "PXAT">;

export type LcDiffOptions =
  & { SINCE?: Spans };

export type LcDiffcardOptions =
  & { SINCE?: Spans };

export type LcInsertOptions =
  & { ERROR?: number; EXACT?: number; BYTES?: number; SEED?: number | bigint; NOCREATE?: boolean; WIDTH?: number }
  & Block<{ WINDOW: number }, { SLICES?: number } & OneOf<{ MANUAL: boolean; VOLATILE: boolean }>>
  & OneOf<{ EX: number; PX: number; EXAT: number; PXAT: number }>
  & Apart<"VOLATILE", "EX" | "PX" | "EXAT" | "PXAT">;

export type LcInterOptions =
  & { SINCE?: Spans };

export type LcIntercardOptions =
  & { SINCE?: Spans };

export type LcMembersOptions =
  & { SINCE?: number };

export type LcQueryOptions =
  & { SINCE?: number; WIDTH?: number };

export type LcReserveOptions =
  & { ERROR?: number; EXACT?: number; BYTES?: number; SEED?: number | bigint }
  & Block<{ WINDOW: number }, { MANUAL?: boolean; SLICES?: number }>
  & OneOf<{ EX: number; PX: number; EXAT: number; PXAT: number }>;

export type LcUnionOptions =
  & { SINCE?: Spans };

export type LcUnioncardOptions =
  & { SINCE?: Spans };

export interface Counters<Text> {
  /** LC.ADD: Adds items to a counter; creates the counter if it is missing. */
  add(key: Argument, items: List): number;
  /** LC.ADMIT: Adds new items to a counter while it has fewer than a limit; the counter stays exact. */
  admit(key: Argument, items: List, options: LcAdmitOptions): Outcome[];
  /** LC.ADMIT: Adds new items to a counter while it has fewer than a limit; the counter stays exact. */
  admitWithRoom(key: Argument, items: List, options: LcAdmitOptions): Room;
  /** LC.ADVANCE: Moves the window of a counter on to a slice, or hands it to the clock. */
  advance(key: Argument, to: number | "CLOCK"): "OK";
  /** LC.CLEAR: Empties a counter, which is exact again unless EXACT is 0, and keeps its parameters and time to live. */
  clear(key: Argument): "OK";
  /** LC.COUNT: Returns the number of distinct members of a counter, or of the union of several. */
  count(keys: List): number;
  /** LC.COUNTSINCE: Returns the number of distinct members that a counter with a window has seen in the last seconds, and at most one slice before. */
  countSince(key: Argument, seconds: number): number;
  /** LC.DIFF: Lists the members of the first counter that are in no other, while all are exact. */
  diff(keys: List, options?: LcDiffOptions): Text[];
  /** LC.DIFFCARD: Returns the number of members of the first counter that are in no other, with its standard error. */
  diffCard(keys: List, options?: LcDiffcardOptions): Estimate;
  /** LC.EXISTS: Returns whether an item is a member of a counter, while the counter is exact. */
  exists(key: Argument, item: Argument): boolean;
  /** LC.HISTORY: Returns for each slice of a counter's window when it begins, how many distinct members were seen since, and the standard error. */
  history(key: Argument): Slice[];
  /** LC.INFO: Returns the parameters and the state of a counter. */
  info(key: Argument): CounterInfo;
  /** LC.INFO: Returns the parameters and the state of a counter. */
  infoField(key: Argument, field: "ERROR" | "EXACT" | "BYTES" | "MODE" | "SIZE" | "COUNT" | "STDERR" | "WINDOW" | "SLICES" | "SLICE" | "CLOCK" | "VOLATILE"): Field;
  /** LC.INSERT: Adds items to a counter; if it is missing, creates it with these options. */
  insert(key: Argument, items: List, options?: LcInsertOptions): number;
  /** LC.INTER: Lists the members that all counters have, while all are exact. */
  inter(keys: List, options?: LcInterOptions): Text[];
  /** LC.INTERCARD: Returns the number of members that all counters have, with its standard error. */
  interCard(keys: List, options?: LcIntercardOptions): Estimate;
  /** LC.LOADCHUNK: Restores a counter chunk by chunk, as LC.SCANDUMP gave them. */
  loadChunk(key: Argument, iterator: number, data: Argument): "OK";
  /** LC.MEMBERS: Lists the members of a counter while it is exact. */
  members(key: Argument, options?: LcMembersOptions): Text[];
  /** LC.MEMBERS: Lists the members of a counter while it is exact. */
  membersWithAges(key: Argument, options?: LcMembersOptions): Aged<Text>[];
  /** LC.MERGE: Makes a counter the union of itself and others. */
  merge(destination: Argument, sources: List): "OK";
  /** LC.MERGEDUMP: Makes a counter the union of itself and values that DUMP has returned or that files have. */
  mergeDump(destination: Argument, payloads: List): "OK";
  /** LC.MEXISTS: Returns for each item whether it is a member of a counter, while the counter is exact. */
  mExists(key: Argument, items: List): boolean[];
  /** LC.QUERY: Returns for each item whether it is a member of a counter, or was added in the last seconds, while the counter is exact. */
  query(key: Argument, items: List, options?: LcQueryOptions): boolean[];
  /** LC.REM: Removes members of a counter, while the counter is exact. */
  rem(key: Argument, members: List): number;
  /** LC.RESERVE: Creates an empty counter with its own error rate and exact limit. */
  reserve(key: Argument, options?: LcReserveOptions): "OK";
  /** LC.SCANDUMP: Returns the next chunk of a counter's dump. */
  scanDump(key: Argument, iterator: number): Chunk;
  /** LC.UNION: Lists the members of all counters together, while all are exact. */
  union(keys: List, options?: LcUnionOptions): Text[];
  /** LC.UNIONCARD: Returns the number of distinct members of all counters together, with its standard error. */
  unionCard(keys: List, options?: LcUnioncardOptions): Estimate;
}

export const LC = {
  add: row("LC.ADD", "key items", "integer", false, true),
  admit: row("LC.ADMIT", "key LIMIT= ALL? DRYRUN? ERROR= EXACT= BYTES= SEED= NOCREATE? WINDOW= MANUAL? VOLATILE? SLICES= EX= PX= EXAT= PXAT= WIDTH= ITEMS items", "outcomes", false, false),
  admitWithRoom: row("LC.ADMIT", "key LIMIT= ALL? DRYRUN? WITHROOM ERROR= EXACT= BYTES= SEED= NOCREATE? WINDOW= MANUAL? VOLATILE? SLICES= EX= PX= EXAT= PXAT= WIDTH= ITEMS items", "room", false, false),
  advance: row("LC.ADVANCE", "key value", "ok", false, false),
  clear: row("LC.CLEAR", "key", "ok", false, false),
  count: row("LC.COUNT", "keys", "integer", true, false),
  countSince: row("LC.COUNTSINCE", "key value", "integer", true, false),
  diff: row("LC.DIFF", "numkeys keys SINCE*", "members", true, false),
  diffCard: row("LC.DIFFCARD", "numkeys keys SINCE*", "estimate", true, false),
  exists: row("LC.EXISTS", "key item", "boolean", true, false),
  history: row("LC.HISTORY", "key", "slices", true, false),
  info: row("LC.INFO", "key", "counter", true, false),
  infoField: row("LC.INFO", "key value", "field", true, false),
  insert: row("LC.INSERT", "key ERROR= EXACT= BYTES= SEED= NOCREATE? WINDOW= MANUAL? VOLATILE? SLICES= EX= PX= EXAT= PXAT= WIDTH= ITEMS items", "integer", false, true),
  inter: row("LC.INTER", "numkeys keys SINCE*", "members", true, false),
  interCard: row("LC.INTERCARD", "numkeys keys SINCE*", "estimate", true, false),
  loadChunk: row("LC.LOADCHUNK", "key value item", "ok", false, false),
  members: row("LC.MEMBERS", "key SINCE=", "members", true, false),
  membersWithAges: row("LC.MEMBERS", "key SINCE= WITHAGES", "ages", true, false),
  merge: row("LC.MERGE", "key keys", "ok", false, false),
  mergeDump: row("LC.MERGEDUMP", "key items", "ok", false, false),
  mExists: row("LC.MEXISTS", "key items", "booleans", true, true),
  query: row("LC.QUERY", "key SINCE= WIDTH= ITEMS items", "booleans", true, true),
  rem: row("LC.REM", "key items", "integer", false, true),
  reserve: row("LC.RESERVE", "key ERROR= EXACT= BYTES= SEED= WINDOW= MANUAL? SLICES= EX= PX= EXAT= PXAT=", "ok", false, false),
  scanDump: row("LC.SCANDUMP", "key value", "chunk", true, false),
  union: row("LC.UNION", "numkeys keys SINCE*", "members", true, false),
  unionCard: row("LC.UNIONCARD", "numkeys keys SINCE*", "estimate", true, false),
};
