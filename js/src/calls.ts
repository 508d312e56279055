import { ItemError } from "./replies";
import { type Argument, argument, MOST_ITEMS, optionsOf, type Row } from "./words";

/** The most items in a call with WIDTH: a limit of the server. */
const MOST_PACKED = 2 ** 20;

/** Runs a command, with a long list of items in several calls, one after another. Joins or sums the replies. */
export async function inCalls(
  row: Row,
  args: readonly unknown[],
  call: (args: readonly unknown[]) => Promise<unknown>,
): Promise<unknown> {
  const [key, items, ...rest] = args;
  const { WIDTH } = optionsOf(row, args);
  const lists = row.isCut ? listsOf(row, items, WIDTH) : [];
  if (lists.length < 2) return call(args);
  const replies: unknown[] = [];
  for (const list of lists) {
    const reply = await call([key, list, ...rest]);
    replies.push(reply);
    // A full filter ends the reply with an error. The next items would get it too.
    if (WIDTH === undefined && Array.isArray(reply) && reply.at(-1) instanceof ItemError) break;
  }
  return replies.every((reply) => typeof reply === "number") ? replies.reduce((sum, one) => sum + one) : replies.flat();
}

/** The list in parts, each of which is sent in one call. */
function listsOf(row: Row, items: unknown, width: unknown): Argument[][] {
  const all: unknown[] = Array.isArray(items) ? items : [items];
  const words = all.map((item) => argument(row, item));
  const most = typeof width === "number" && width > 0 ? MOST_PACKED * width : undefined;
  const pieces = most === undefined ? words : words.flatMap((run) => piecesOf(run, most));
  const lists: Argument[][] = [];
  let size = 0;
  for (const piece of pieces) {
    const last = lists.at(-1);
    size += piece.length;
    if (last && last.length < MOST_ITEMS && (most === undefined || size <= most)) {
      last.push(piece);
    } else {
      lists.push([piece]);
      size = piece.length;
    }
  }
  return lists;
}

/** A run of items in pieces of at most `most` bytes. */
function piecesOf(run: Argument, most: number): Buffer[] {
  const bytes = typeof run === "string" ? Buffer.from(run) : run;
  const count = Math.max(1, Math.ceil(bytes.length / most));
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * most, (at + 1) * most));
}
