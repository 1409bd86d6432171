/** Collects the problems of a configuration for the person who wrote it: all of them, in the order of the file. */
import { plain } from "../core/inference/plain-text.ts";
import type { Path } from "../core/schema/walk.ts";

/** Problems of a value, each with the path of its place. */
export type FoundProblems = Iterable<[path: Path, message: string]>;

/** A position in a file. Lines and columns count from 1. */
export interface FilePosition {
  line: number;
  column: number;
}

/** The most problems that are shown; of the others the message states only how many there are. */
const problems_shown_max = 20;
/** The most problems that are kept: a hostile file must not fill the memory. */
export const problems_kept_max = 1000;

/**
 * An invalid configuration. `problems`: one line each; `message`: all of them, ready to print. Neither ever has a
 * secret.
 */
export class ConfigurationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["The configuration cannot be used:", ...problems.map((problem) => `  ${problem}`)].join("\n"));
    this.name = "ConfigurationError";
    this.problems = problems;
  }
}

export class Problems {
  readonly #file: string;
  readonly #found: { place: FilePosition | null; text: string }[] = [];
  #count = 0;

  constructor(file: string) {
    this.#file = file;
  }

  get any(): boolean {
    return this.#count > 0;
  }

  /** Adds a problem. An empty path stands for the file as a whole. */
  add(path: Path, message: string, place: FilePosition | null): void {
    this.#count += 1;
    if (this.#found.length >= problems_kept_max) return;
    this.#found.push({ place, text: path.length > 0 ? `${fieldOf(path)}: ${message}` : message });
  }

  lines(): string[] {
    const ordered = this.#found.toSorted((one, other) => order(one.place) - order(other.place));
    const lines = ordered.slice(0, problems_shown_max).map(({ place, text }) => `${this.#at(place)}: ${plain(text)}`);
    const more = this.#count - lines.length;
    return more > 0 ? [...lines, `${this.#file}: and ${more} more problem${more === 1 ? "" : "s"}`] : lines;
  }

  /** The position as `file:line:column`, which terminals and editors can open. */
  #at(place: FilePosition | null): string {
    return place ? `${this.#file}:${place.line}:${place.column}` : this.#file;
  }
}

/** The path as text: `models[3].routes[0].upstream`. */
export function fieldOf(path: Path): string {
  const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${shortened(step)}`));
  return steps.join("").replace(/^\./, "");
}

export function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function order(place: FilePosition | null): number {
  return place ? place.line * 1e6 + place.column : 0;
}
