export type * from "./commands";
export { ItemError } from "./replies";
export type { Aged, Chunk, CounterInfo, Estimate, Field, FilterInfo, Outcome, Room, Slice } from "./replies";
export type { Argument, List, Spans } from "./words";
