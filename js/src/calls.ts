import { ItemError } from "./replies";
import { type Argument, MOST_ITEMS, optionsOf, type Row } from "./words";

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
  const lists = row.isCut ? listsOf(items, WIDTH) : [];
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
function listsOf(items: unknown, width: unknown): Argument[][] {
  const all: Argument[] = Array.isArray(items) ? items : [items];
  const most = typeof width === "number" && width > 0 ? MOST_PACKED * width : undefined;
  const pieces = most === undefined ? all : all.flatMap((run) => piecesOf(run, most));
  const lists: Argument[][] = [];
  let bytes = 0;
  for (const piece of pieces) {
    bytes += piece.length;
    const last = lists.at(-1);
    if (last && last.length < MOST_ITEMS && (most === undefined || bytes <= most)) {
      last.push(piece);
    } else {
      lists.push([piece]);
      bytes = piece.length;
    }
  }
  return lists;
}

/** A run of items in pieces of at most so many bytes. */
function piecesOf(run: Argument, most: number): Argument[] {
  if (run.length * 3 <= most) return [run];
  const bytes = Buffer.from(run as string);
  const starts = Array.from({ length: Math.max(1, Math.ceil(bytes.length / most)) }, (_, at) => at * most);
  return starts.map((start) => bytes.subarray(start, start + most));
}
