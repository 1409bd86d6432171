/**
 * A verb as a command: which words are typed, which arguments and options stand for the members of its input, and what is
 * printed for people. The parser of an option follows from the schema of its member, and `--json` prints the verb's own
 * answer. The command line (cli/verb-command.ts) is made of these values.
 */

/** `<team>` is an argument, `--org <org>` an option. */
export interface Flag {
  flag: string;
  description: string;
  /** Whether the command cannot do without the option. An argument in angle brackets is always required. */
  isRequired?: true;
  /** The value that the command sends where the option is left out. */
  fallback?: unknown;
  /** Whether help lists the values of the schema. */
  hasChoices?: true;
}

export function flag(written: string, description: string): Flag {
  return { flag: written, description };
}

export function required(written: string, description: string): Flag {
  return { flag: written, description, isRequired: true };
}

/** A line for each fact that has a value. */
export type Facts = readonly (readonly [name: string, value: string | null])[];

export interface Column<Row> {
  head: string;
  /** `now_ms` is this machine's clock, for display. */
  cell: (row: Row, now_ms: number) => string;
  /** Whether a narrow screen may break it over several lines; ids and dates stay whole, so that they can be copied. */
  breaks?: boolean;
  /** Whether it is left out if the screen is too narrow, the rightmost first; `show` and `--json` have it. */
  optional?: boolean;
}

interface Declared<Given> {
  /** All that is typed after the program's name: `team create`. */
  words: string;
  description: string;
  /** The members of the input, in the order of help. */
  takes: { readonly [Member in keyof Given]?: Flag };
  /** The option `--limit`, where the limits are members of the input by themselves. */
  limits?: Flag;
  /** The options of which the command needs one at least, in words. */
  needsOneOf?: string;
  /** The thing whose version `--if-version` names. */
  versioned?: string;
  /** Text after the help: examples. */
  help?: string;
}

/** A command whose answer is one thing, in words or in facts. */
export interface ThingCommand<Given, Answer> extends Declared<Given> {
  says(answer: Answer, given: Given): string | Facts | { facts: Facts; after: string };
}

/** A command whose answer is a list, which is printed as a table. */
export interface ListCommand<Given, Item> extends Declared<Given> {
  columns: readonly Column<Item>[];
  /** The text that is printed in the place of an empty table. */
  none: string | ((given: Given) => string);
  /** A sentence below the table; null: there is nothing to add. */
  after?: (items: readonly Item[], now_ms: number) => string | null;
  /** `all` gets part after part, in this order; `enough` does so until there are as many as the limit says. */
  parts: "all" | "enough" | "one";
  order?: (items: readonly Item[]) => Item[];
}

export type Command<Given, Answer> = Answer extends { data: (infer Item)[] }
  ? ListCommand<Given, Item>
  : ThingCommand<Given, Answer>;
