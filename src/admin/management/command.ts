/**
 * A verb as a command: which words are typed, which arguments and options stand for the members of its input, what is asked
 * before it acts, and what is printed for people. The parser of an option follows from the schema of its member, and
 * `--json` prints the verb's own answer. The command line (cli/verb-command.ts), its help, and the command that the console
 * shows beside an act are made of these values.
 */

/** An argument or option of a command: `<team>` is an argument, `--org <org>` an option. */
export interface Flag {
  flag: string;
  description: string;
  /** The option is required. An argument in angle brackets always is. */
  isRequired?: true;
  /** The value that the command sends if the option is left out. */
  fallback?: unknown;
  /** The help of the option lists the values of its schema. */
  hasChoices?: true;
  /**
   * How null is typed: as a word in the place of a value (`never`), with an option of its own (`--no-owner`), or with an
   * argument (`<on|off>`) that says whether there is a value.
   */
  none?: string | Flag;
  /** The words that are typed for values that are no text. */
  words?: Readonly<Record<string, boolean>>;
  /** The option may be repeated: its values are joined with commas. */
  adds?: true;
  /** A unit that may follow the number: `90d`. */
  unit?: string;
  /** The question for the value on a terminal, if the value is left out. */
  asks?: FlagQuestion;
}

export function flag(written: string, description: string): Flag {
  return { flag: written, description };
}

export function required(written: string, description: string): Flag {
  return { flag: written, description, isRequired: true };
}

/** The question for a value: the user types text, unless there is a list to choose from. */
export interface FlagQuestion {
  message: string;
  from?: Choices;
}

interface Choices {
  /** The verb that lists the things to choose from. */
  list: { name: string };
  /** The choice for an item of the list. Null: this item cannot be chosen. */
  option(item: unknown): { value: string; label: string } | null;
  /** The refusal if there is nothing to choose from. */
  none: string;
}

/** A question that the command asks before it acts. */
export interface Confirmation {
  /** The verb that reads the thing that the question is about. */
  of: { name: string };
  question(found: unknown, given: Record<string, unknown>): string;
  /** The failure if the answer is no. */
  refusal: string;
  /** The failure if nobody can be asked and `--yes` is not given; absent: the command then acts. */
  needsYes?: string;
}

/** A line for each fact that has a value. */
export type Facts = readonly (readonly [name: string, value: string | null])[];

/** A part of what is printed; there is an empty line between parts. */
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
  /** Shows how much is used as a bar, in place of a text. */
  bar?: Bar<Row>;
  /** A narrow screen may break the cell over several lines; ids and dates stay whole, so that they can be copied. */
  breaks?: boolean;
  /** The column is left out if the screen is too narrow, the rightmost first; `show` and `--json` have its values. */
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
  /** All that is typed after the program's name: `team create`. */
  words: string;
  description: string;
  /** The flag for each member of the input, in the order in which the help lists them. */
  takes: { readonly [Member in keyof Given]?: Flag };
  /** The option `--limit`, if each limit is a member of the input by itself. */
  limits?: Flag;
  /** The options of which the command needs one at least, in words. */
  needsOneOf?: string;
  /** The verb that reads the thing that this verb changes. Its answer is printed if no option says what to change. */
  reads?: { name: string };
  /** The word for the thing whose version `--if-version` names. */
  versioned?: string;
  confirms?: Confirmation;
  /** The options that print the answer in another form than words and JSON, by the names of the verb's formats. */
  formats?: Readonly<Record<string, Flag>>;
  /** The member of the answer that `--json` prints; absent: the whole answer, or the items of a list. */
  prints?: string;
  /** Text to print to stderr, where no program reads it. */
  notes?(answer: Answer): string;
  /** Why the command fails although the verb has succeeded; null: the command does not fail. */
  fails?(answer: Answer): string | null;
  /** Text after the help: examples. */
  help?: string;
}

/** A command whose answer is one thing. */
export interface ThingCommand<Given, Answer> extends Declared<Given, Answer> {
  says(answer: Answer, given: Given, now_ms: number): Said;
}

/** A command whose answer is a list, which is printed as a table. */
export interface ListCommand<Given, Item> extends Declared<Given, unknown> {
  columns: readonly Column<Item>[];
  /** The text that is printed in the place of an empty table. */
  none: string | ((given: Given) => string);
  /** A sentence below the table; null: there is nothing to add. */
  after?: (items: readonly Item[], now_ms: number) => string | null;
  /**
   * How many parts (pages) of the list are read. `one`: a single one. `all`: every part; then all items are sorted by
   * `order`. `enough`: parts until there are as many items as the limit says.
   */
  parts: "all" | "enough" | "one";
  order?: (items: readonly Item[]) => Item[];
}

export type Command<Given, Answer> = Answer extends { data: (infer Item)[] }
  ? ListCommand<Given, Item>
  : ThingCommand<Given, Answer>;
