/** Text, or bytes. */
export type Argument = string | Buffer;
/** One argument, or several. */
export type List = Argument | readonly Argument[];
/** Seconds, or "-" for all that a counter remembers: one span for all keys, or one for each key. */
export type Spans = number | "-" | readonly (number | "-")[];

type None<T> = { [Option in keyof T]?: never };
/** At most one of these options. */
export type OneOf<T> = None<T> | { [Option in keyof T]: Pick<T, Option> & None<Omit<T, Option>> }[keyof T];
/** The option of `Need`, with any of `More`; or none of them. */
export type Block<Need, More> = (Need & More) | None<Need & More>;

/** The option A, or options of B; not both, but A with the value `Beside`. */
export type Apart<A extends string, B extends string, Beside = never> =
  | { [Option in A]?: Beside }
  | { [Option in B]?: never };

/** A command: its name, the parts of its layout, and how its reply is read. */
export interface Row<Kind extends string = string> {
  readonly name: string;
  /**
   * In the order of the command: `key`, `keys`, `numkeys`, `item`, `items` and `value` are parameters. `TOKEN?`,
   * `TOKEN=` and `TOKEN*` are options without a value, with one, and with one or several. `TOKEN` is always sent.
   */
  readonly parts: readonly string[];
  readonly kind: Kind;
  readonly isRead: boolean;
  /** Whether a long list of items may be sent in several calls. */
  readonly isCut: boolean;
  /** The number of parameters before the options. */
  readonly parameters: number;
  readonly options: ReadonlySet<string>;
}

export function row<Kind extends string>(
  name: string,
  layout: string,
  kind: Kind,
  isRead: boolean,
  isCut: boolean,
): Row<Kind> {
  const parts = layout.split(" ");
  const parameters = parts.filter((part) => PARAMETERS.has(part)).length;
  const options = parts.filter((part) => /[=?*]$/.test(part)).map((part) => part.slice(0, -1));
  return { name, parts, kind, isRead, isCut, parameters, options: new Set(options) };
}

const PARAMETERS = new Set(["key", "keys", "item", "items", "value"]);

/** Where the words of a command go. */
export interface Sink {
  push(word: Argument): unknown;
  pushKey(key: Argument): unknown;
}

/** The most items in a call of a command that may be cut. Adding them takes the server some 0.5 ms. */
export const MOST_ITEMS = 10_000;
/** The most keys, items or payloads in any call. Above 2^20 words the server closes the connection. */
const MOST_WORDS = 1_000_000;

/** Writes a command with these arguments of its method. */
export function write(row: Row, args: readonly unknown[], sink: Sink): void {
  const options = optionsOf(row, args);
  let at = 0;
  sink.push(row.name);
  for (const part of row.parts) {
    if (part === "key") sink.pushKey(argument(row, args[at++]));
    else if (part === "keys") for (const key of list(row, args[at++])) sink.pushKey(key);
    else if (part === "numkeys") sink.push(String(list(row, args[at]).length));
    else if (part === "item") sink.push(argument(row, args[at++]));
    else if (part === "items") for (const item of list(row, args[at++])) sink.push(item);
    else if (part === "value") sink.push(scalar(row, args[at++]));
    else writeOption(row, part, options, sink);
  }
}

/** The options among the arguments of a method. */
export function optionsOf(row: Row, args: readonly unknown[]): Readonly<Record<string, unknown>> {
  const given = args[row.parameters] ?? {};
  if (typeof given !== "object") {
    const place = row.parameters + 1;
    throw new TypeError(`${row.name}: expected options, an object, as argument ${place}, got ${typeof given}`);
  }
  const options = given as Record<string, unknown>;
  for (const name of Object.keys(options)) {
    if (row.options.has(name)) continue;
    throw new TypeError(`${row.name} has no option ${name}, but: ${[...row.options].join(", ") || "none"}`);
  }
  return options;
}

function writeOption(row: Row, part: string, options: Readonly<Record<string, unknown>>, sink: Sink): void {
  const token = part.replace(/[=?*]$/, "");
  const value = options[token];
  if (token === part || (part.endsWith("?") && value)) {
    sink.push(token);
  } else if (!part.endsWith("?") && value !== undefined) {
    sink.push(token);
    // Where one value is due, further words would be read as options.
    for (const one of part.endsWith("*") && Array.isArray(value) ? value : [value]) sink.push(scalar(row, one, token));
  }
}

/** One argument, or several, as an array. */
function list(row: Row, value: unknown): readonly Argument[] {
  const all = Array.isArray(value) ? value : [value];
  if (row.isCut && all.length > MOST_ITEMS) {
    throw new RangeError(
      `${row.name}: ${all.length} items, and a call takes ${MOST_ITEMS}: ` +
        "rollcall(client) sends several calls, but in MULTI and pipelines split the list",
    );
  }
  if (all.length > MOST_WORDS) {
    throw new RangeError(`${row.name}: ${all.length} words in a list, and a call takes ${MOST_WORDS}`);
  }
  for (const one of all) argument(row, one);
  return all;
}

/** Rejects what a client would turn into text, or could not send. */
export function argument(row: Row, value: unknown, option?: string): Argument {
  if (typeof value === "string" || Buffer.isBuffer(value)) return value;
  const expected = option === undefined ? "a string or a Buffer" : `a number or a string for ${option}`;
  throw new TypeError(`${row.name}: expected ${expected}, got ${value === null ? value : typeof value}`);
}

/** The text of a number, or a word. */
function scalar(row: Row, value: unknown, option?: string): Argument {
  return typeof value === "number" || typeof value === "bigint" ? String(value) : argument(row, value, option);
}
