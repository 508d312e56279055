import { type ChainableCommander, type Cluster, Command, type Redis } from "ioredis";
import { inCalls } from "./calls";
import { BF, type Counters, type Filters, LC } from "./commands";
import { type Context, type Kind, READERS } from "./replies";
import { type Argument, type Row, write } from "./words";

export * from "./types";

/** The methods of a family, which return a promise. */
type Calls<Family> = {
  [Name in keyof Family]: Family[Name] extends (...args: infer Args) => infer Reply
    ? (...args: Args) => Promise<Reply>
    : never;
};
/** The methods of a family, which add a command to a pipeline. `exec` returns the replies. */
type Queued<Family> = {
  [Name in keyof Family]: Family[Name] extends (...args: infer Args) => unknown ? (...args: Args) => void : never;
};

/** The commands of a client. `rf` are the filters as RF.*. */
export interface Rollcall<Member> {
  bf: Calls<Filters>;
  rf: Calls<Filters>;
  lc: Calls<Counters<Member>>;
}
export interface QueuedRollcall {
  bf: Queued<Filters>;
  rf: Queued<Filters>;
  lc: Queued<Counters<unknown>>;
}

/** Whether members are returned as buffers; by default they are strings. */
export interface Options<Buffers extends boolean = boolean> {
  buffers?: Buffers;
}

/** The commands of a client, or of a pipeline or MULTI of it. Only on a client are long lists sent in several calls. */
export function rollcall(client: Redis | Cluster, options: Options<true> & { buffers: true }): Rollcall<Buffer>;
export function rollcall(client: Redis | Cluster, options?: Options<false>): Rollcall<string>;
export function rollcall(pipeline: ChainableCommander, options?: Options): QueuedRollcall;
export function rollcall(client: Redis | Cluster | ChainableCommander, { buffers = false }: Options = {}): unknown {
  const target = client as unknown as Target;
  const text = buffers ? (reply: unknown) => reply : String;
  const family = (rows: Record<string, Row<Kind>>, prefix = "BF") => {
    const methods = Object.entries(rows).map(([method, row]) => {
      const named = { ...row, name: row.name.replace("BF", prefix) };
      const send = (args: readonly unknown[]) =>
        target.sendCommand(command(named, args, text, target.options.keyPrefix));
      return [method, (...args: unknown[]) => (target.isPipeline ? void send(args) : inCalls(named, args, send))];
    });
    return Object.fromEntries(methods);
  };
  return { bf: family(BF), rf: family(BF, "RF"), lc: family(LC) };
}

/** What a client and a pipeline have in common. */
interface Target {
  readonly isPipeline?: true;
  readonly options: { readonly keyPrefix?: string };
  sendCommand(command: Command): Promise<unknown>;
}

/** A command that knows its keys, because ioredis does not, and reads its reply. */
function command(row: Row<Kind>, args: readonly unknown[], text: Context["text"], prefix = ""): Command {
  const words: Argument[] = [];
  const keys: Argument[] = [];
  write(row, args, {
    push: (word) => words.push(word),
    pushKey(key) {
      keys.push(typeof key === "string" ? prefix + key : Buffer.concat([Buffer.from(prefix), key]));
      words.push(keys.at(-1)!);
    },
  });
  const [name, ...rest] = words;
  const made = new Command(String(name), rest, { replyEncoding: null, readOnly: row.isRead });
  return Object.assign(made, {
    getKeys: () => keys,
    // In MULTI this reads the reply QUEUED first, and then that of EXEC. A list may hold the one member "QUEUED".
    transformReply(reply: unknown): any {
      const isQueued = !Array.isArray(reply) && String(reply) === "QUEUED";
      return isQueued ? "QUEUED" : READERS[row.kind](reply, { text, field: args[1] });
    },
  });
}
