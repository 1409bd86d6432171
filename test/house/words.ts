// Checks that names use the field's usual words, that units in names are written in snake case, and that comments are
// complete sentences. Each finding says what to write instead.

import { commentsOf, lineAt, type Tree } from "./source.ts";

/**
 * The key is a word that only this project used in names of files or declarations (docs/decisions.md); the value is
 * what to write instead.
 */
const privateWords: Record<string, string> = {
  acting: "context",
  building: "context",
  door: "operation, route or entrance",
  "engine-words": "engine-options",
  errand: "request",
  itinerary: "routes or order",
  keeper: "saver",
  letsgo: "shedsConnection or release",
  letters: "codeUnits (of UTF-16) or characters",
  nowhereyet: "initialProgress",
  plainly: "unwrapErrors",
  reach: "connect",
  shown: "excerpt, label or listed",
  unsaid: "unsupported",
  wish: "options or request",
};

const words = Object.keys(privateWords).join("|");
/** Matches the declaration of a variable, function or type; or a field or parameter with its type or value. */
const declared = new RegExp(
  `\\b(?:const|let|function|class|interface|type)\\s+(${words})\\b|[({,]\\s*(${words})\\??:`,
  "gi",
);

export function privateNames(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) => {
    const file = /([^/]+?)(\.test)?\.ts$/.exec(path)?.[1] ?? "";
    const named = Object.hasOwn(privateWords, file) ? [`${path}: a private word. Instead: ${privateWords[file]}`] : [];
    const found = [...source.matchAll(declared)].map((match) => {
      const word = match[1] ?? match[2]!;
      return `${path}:${lineAt(source, match.index)}: '${word}'. Instead: ${privateWords[word.toLowerCase()]}`;
    });
    return [...named, ...found];
  });
}

/** Names with a unit or bound in camel case, where all other code writes `lease_ms`. */
export function strayUnits(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    [...source.matchAll(/(?<![\w$])([a-z]\w*[a-z0-9])(Ms|Max|Min)\b/g)].map(
      ([name, stem, unit], at, all) =>
        `${path}:${lineAt(source, all[at]!.index)}: '${name}'. Instead: ${stem}_${unit!.toLowerCase()}`,
    ),
  );
}

/** Comments that begin as a riddle: a clause or a genitive in place of a sentence or of a noun that names the thing. */
export function riddles(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    commentsOf(path, source)
      .filter(({ text }) => /^(What|Of|Whoever)\b(?!.*\?$)/.test(text))
      .map(
        ({ line, text }) => `${path}:${line}: '${text.slice(0, 60)}'. Instead: a sentence, or the noun that names it`,
      ),
  );
}

const unnamed: Record<string, { opening: RegExp; instead: string }> = {
  returned: {
    opening: /^Answers (whether|how|what|null|undefined|true|false|the|all)\b/,
    instead: "'Returns', or the noun of the result",
  },
  class: { opening: /^(This is a|A) class:/, instead: "what the class holds or does, and why it is a class" },
  pronoun: { opening: /^(It|Its|One that|This one|For all of it)\b/, instead: "the noun that it stands for" },
};

/** Comments that omit the noun: "Answers the number" of a function that returns it, "This is a class:", "It". */
export function missingNouns(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    commentsOf(path, source).flatMap(({ line, text }) =>
      Object.values(unnamed)
        .filter(({ opening }) => opening.test(text))
        .map(({ instead }) => `${path}:${line}: '${text.slice(0, 60)}'. Instead: ${instead}`),
    ),
  );
}

const vagueType =
  /^export (?:interface|type|(?:abstract )?class) (Answer|Parts|Place|Question|Reading|Refusal|Room)\b/gm;

/** Exported types with a name that any module could use: the name needs a noun that distinguishes it. */
export function vagueTypes(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    [...source.matchAll(vagueType)].map(
      ({ 1: name, index }) =>
        `${path}:${lineAt(source, index)}: '${name}'. Instead: whose it is, such as ListPosition or EngineReply`,
    ),
  );
}

/** Comments that say "whoever", or call a person "she": prose names the caller or the person, or says "they". */
export function oddPersons(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    commentsOf(path, source).flatMap(({ line, text }) =>
      [...text.matchAll(/\b(whoever|she|hers?|herself)\b/gi)].map(
        ([word]) => `${path}:${line}: '${word}'. Instead: the caller, the person, or they`,
      ),
    ),
  );
}

/**
 * Spreads of an object literal into an object literal: the members should be written directly into the outer object.
 */
export function spreadLiterals(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    [...source.matchAll(/\.\.\.\{/g)].map(
      ({ index }) => `${path}:${lineAt(source, index)}: write the members themselves`,
    ),
  );
}
