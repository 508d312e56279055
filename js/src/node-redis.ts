import type { CommandParser, RESP_TYPES } from "redis";
import { inCalls } from "./calls";
import { BF, type Counters, type Filters, LC } from "./commands";
import { type Kind, READERS } from "./replies";
import { type Row, write } from "./words";

export * from "./types";

/** A member in a reply: a string, or a Buffer if `withTypeMapping` says so. */
interface Member {
  RESP_TYPE: typeof RESP_TYPES.BLOB_STRING;
  DEFAULT: string;
  TYPES: Buffer;
  TYPE_MAPPING: (...args: any) => string | Buffer;
}

type Command<Method> = Method extends (...args: infer Args) => infer Reply
  ? {
      readonly CACHEABLE: false;
      readonly IS_READ_ONLY: boolean;
      readonly parseCommand: (this: void, parser: CommandParser, ...args: Args) => void;
      readonly transformReply: (this: void, reply: any, preserve?: any) => Reply;
    }
  : never;
type Module<Family> = { readonly [Name in keyof Family]: Command<Family[Name]> };

/** Members are strings or buffers already, as the client was told. */
const text = (reply: unknown) => reply;

function module<Family>(rows: Record<string, Row<Kind>>, prefix?: string): Module<Family> {
  const commands = Object.entries(rows).map(([method, row]) => {
    const named = prefix ? { ...row, name: row.name.replace("BF", prefix) } : row;
    const command = {
      // No server tells a cache that a member of a windowed key has expired.
      CACHEABLE: false,
      IS_READ_ONLY: row.isRead,
      parseCommand(parser: CommandParser, ...args: unknown[]) {
        write(named, args, parser);
        if (row.kind === "field") parser.preserve = args[1];
      },
      transformReply: (reply: unknown, field: unknown) => READERS[row.kind](reply, { text, field }),
    };
    return [method, command] as const;
  });
  // node-redis has each command also in capitals, and its types for `bf` are still there.
  const capitals = commands.map(([method, command]) => [rows[method]!.name.slice(3), command] as const).reverse();
  return Object.fromEntries([...capitals, ...commands]) as Module<Family>;
}

/** For `createClient({ modules })`, `createCluster` and `createSentinel`. `rf` are the filters as RF.*. */
export const modules = {
  bf: module<Filters>(BF),
  rf: module<Filters>(BF, "RF"),
  lc: module<Counters<Member>>(LC),
};

const FAMILIES = { bf: BF, rf: BF, lc: LC } as Record<keyof typeof modules, Record<string, Row>>;

/** The commands of a client made with `modules`, which send long lists of items in several calls, but not in MULTI. */
export function rollcall<Client extends Record<keyof typeof modules, object>>(
  client: Client,
): Pick<Client, keyof typeof modules> {
  if ("execTyped" in client) return client;
  const families = Object.entries(FAMILIES).map(([family, rows]) => {
    const single = client[family as keyof typeof modules] as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const methods = Object.entries(rows).map(([name, row]) => {
      return [name, (...args: unknown[]) => inCalls(row, args, (part) => single[name]!(...part))];
    });
    return [family, Object.fromEntries(methods)];
  });
  return Object.fromEntries(families);
}
