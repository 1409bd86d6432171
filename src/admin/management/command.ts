/**
 * The command of a verb, as a value: the words that are typed, the arguments and options for the members of the verb's
 * input, the questions before the verb acts, and the text that is printed for people. The parser of an option follows
 * from the schema of its member; `--json` prints the verb's answer. The command line (cli/verb-command.ts), its help,
 * and the command that the console shows beside an action are made from these values.
 */

/** An argument or option of a command: `<team>` is an argument, `--org <org>` an option. */
export interface Flag {
  flag: string;
  description: string;
  /** The option is required. An argument in angle brackets is always required. */
  isRequired?: true;
  /** The value that the command sends if the option is left out. */
  fallback?: unknown;
  /** The option's help lists the values that its schema allows. */
  hasChoices?: true;
  /**
   * How null is typed: as a word in the place of a value (`never`), with an option of its own (`--no-owner`), or with an
   * argument (`<on|off>`) that says whether there is a value.
   */
  none?: string | Flag;
  words?: Readonly<Record<string, boolean>>;
  /** The option may be repeated; the values are then joined with commas. */
  adds?: true;
  /** A unit that may follow the typed number: the `d` of `90d`. */
  unit?: string;
  /** The question that asks for the value on a terminal if the value is left out. */
  asks?: FlagQuestion;
}

export function flag(written: string, description: string): Flag {
  return { flag: written, description };
}

export function required(written: string, description: string): Flag {
  return { flag: written, description, isRequired: true };
}

/** A question that asks for a value. The user types text, unless there is a list to choose from. */
export interface FlagQuestion {
  message: string;
  from?: Choices;
}

interface Choices {
  /** The verb that lists the things from which the user chooses. */
  list: { name: string };
  /** The choice for an item of the list. Null: this item cannot be chosen. */
  option(item: unknown): { value: string; label: string } | null;
  /** The error message if there is nothing to choose from. */
  none: string;
}

export interface Confirmation {
  /** The verb that reads the data for the text of the question. */
  of: { name: string };
  question(found: unknown, given: Record<string, unknown>): string;
  /** The error message if the user answers no. */
  refusal: string;
  /** The error message if there is no terminal to ask on and `--yes` is not given; absent: the command then acts. */
  needsYes?: string;
}

/** Facts are printed one per line; a fact whose value is null is not printed. */
export type Facts = readonly (readonly [name: string, value: string | null])[];

/** A piece of the printed text; an empty line separates pieces. */
export type Piece =
  | string
  | { facts: Facts }
  | { columns: readonly Column<never>[]; rows: readonly unknown[]; after?: string }
  | { secret: string }
  | { warnings: readonly string[] };
export type Said = string | Facts | { pieces: readonly Piece[] };

export function tablePiece<Row>(columns: readonly Column<Row>[], rows: readonly Row[], after = ""): Piece {
  return { columns, rows, after };
}

export interface Column<Row> {
  head: string;
  /** The text of a cell. `now_ms` is this machine's clock, for display. */
  cell: (row: Row, now_ms: number) => string;
  /** Shows how much of a limit is used, as a bar in place of the text. */
  bar?: Bar<Row>;
  /**
   * On a narrow screen, the cell may be broken over several lines. Ids and dates are never broken, so that they can be
   * copied.
   */
  breaks?: boolean;
  /**
   * The column is left out if the screen is too narrow, the rightmost column first; `show` and `--json` have its
   * values.
   */
  optional?: boolean;
}

interface Bar<Row> {
  /** How many characters the bar has on a narrow screen, and on a wide one. */
  cells: readonly [narrow: number, wide: number];
  of(row: Row): { used: number; held: number; limit: number | null };
}

export function barColumn<Row>(cells: Bar<Row>["cells"], of: Bar<Row>["of"]): Column<Row> {
  return { head: "", cell: () => "", bar: { cells, of } };
}

interface Declared<Given, Answer> {
  /** The command's name, as typed after the program's: `team create`. */
  words: string;
  description: string;
  /** The flag for each member of the input, in the order in which the help lists them; absent: there are no flags. */
  takes?: { readonly [Member in keyof Given]?: Flag };
  /** The option `--limit`, if each limit is a separate member of the input. */
  limits?: Flag;
  /** The options of which the command needs at least one, in words. */
  needsOneOf?: string;
  /**
   * The verb that reads the thing that this verb changes. If no option names a change, the answer of that verb is
   * printed instead.
   */
  reads?: { name: string };
  /** The word for the changed thing in the help of `--if-version`. */
  versioned?: string;
  confirms?: Confirmation;
  /** The options that print the answer in a form other than words and JSON, by the names of the verb's formats. */
  formats?: Readonly<Record<string, Flag>>;
  /** The member of the answer that `--json` prints; absent: the whole answer is printed, or of a list the items. */
  prints?: string;
  /** Text to print to stderr, so that programs that read stdout do not get it. */
  notes?(answer: Answer): string;
  /** The reason why the command fails although the verb has succeeded; null: the command does not fail. */
  fails?(answer: Answer): string | null;
  /** Text after the help: examples. */
  help?: string;
}

/** A command whose answer is a single object, and no list. `says` returns what is printed of it. */
export interface ThingCommand<Given, Answer> extends Declared<Given, Answer> {
  says(answer: Answer, given: Given, now_ms: number): Said;
}

/** A command whose answer is a list, which is printed as a table. */
export interface ListCommand<Given, Item> extends Declared<Given, unknown> {
  columns: readonly Column<Item>[];
  /** The text that is printed instead of an empty table. */
  none: string | ((given: Given) => string);
  /** A sentence below the table; null: there is nothing to add. */
  after?: (items: readonly Item[], now_ms: number) => string | null;
  /**
   * How many pages of the list are read. `all`: every page, or pages until there are as many items as the option
   * `--limit` says; then the items are sorted by `order`. Absent: one page.
   */
  parts?: "all";
  order?: (items: readonly Item[]) => Item[];
}

export type Command<Given, Answer> = Answer extends { data: (infer Item)[] }
  ? ListCommand<Given, Item>
  : ThingCommand<Given, Answer>;
