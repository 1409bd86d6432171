// Finds the latest definitions of the SQL functions in the migrations, and the product's code that calls them. Pure.

import type { Tree } from "../../test/house/source.ts";
import type { Place } from "./test-runs.ts";

interface Definition {
  path: string;
  body: string;
}

const definition = /create (?:or replace )?(?:function|procedure) (\w+)[\s\S]*?(\$\$[\s\S]*?\$\$)/gi;
const removal = /drop (?:function|procedure) (?:if exists )?(\w+)/gi;
const trigger = /create trigger \w+[^;]*? on (\w+)[^;]*?execute function (\w+)/gi;

export class SqlFunctions {
  readonly #newest = new Map<string, Definition>();
  /** The tables whose triggers call a function, by the function's name. */
  readonly #tables = new Map<string, string[]>();
  /** The text of the migrations outside of functions: views, defaults, and statements that are run once. */
  readonly #rest: string;

  constructor(readonly sources: Tree) {
    const migrations = [...sources].filter(([path]) => path.endsWith(".sql")).sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [path, text] of migrations) {
      for (const [, name = ""] of text.matchAll(removal)) this.#newest.delete(name);
      for (const [, name = "", body = ""] of text.matchAll(definition)) this.#newest.set(name, { path, body });
      for (const [, table = "", name = ""] of text.matchAll(trigger))
        this.#tables.set(name, [...(this.#tables.get(name) ?? []), table]);
    }
    const beside = migrations.map(([, text]) => text.replaceAll(definition, "").replaceAll(trigger, ""));
    this.#rest = beside
      .join("\n")
      .replaceAll(/(?:drop|comment on|grant execute on) (?:function|procedure)[^;]*;|--.*/gi, "");
  }

  /** Whether the definition in this migration is in force: a later migration may have replaced it. */
  isNewest(name: string, path: string): boolean {
    return this.#newest.get(name)?.path === path;
  }

  /**
   * The parts of the product whose statements call the function, directly or through other functions; null if these
   * cannot be determined.
   */
  callersOf(name: string, partAt: (file: string, at: number) => number): Place | null {
    const names = this.#namesThatCall(name);
    if (names === null) return null;
    const words = new RegExp(`\\b(?:${[...names].join("|")})\\b`, "g");
    return [...this.sources].flatMap(([file, text]) =>
      file.endsWith(".ts") ? [...text.matchAll(words)].map(({ index }) => ({ file, part: partAt(file, index) })) : [],
    );
  }

  /**
   * The names of the function, of the functions that call it, and of the tables whose triggers call it. Null if a view
   * or a default calls it.
   */
  #namesThatCall(name: string): Set<string> | null {
    const found = new Set([name]);
    for (const one of found) {
      const word = new RegExp(`\\b${one}\\b`);
      if (this.#newest.has(one) && word.test(this.#rest)) return null;
      for (const table of this.#tables.get(one) ?? []) found.add(table);
      for (const [other, { body }] of this.#newest) if (word.test(body)) found.add(other);
    }
    return found;
  }
}
