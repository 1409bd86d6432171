/**
 * The declaration files of the pinned SDKs, parsed as far as this test needs them: the interfaces, the possible values
 * of their `type`, and the unions to which they belong. The files are generated in one style: an indent of four spaces
 * a level.
 */
import { join } from "node:path";

const modules = join(import.meta.dir, "../../../../node_modules");

export const files = {
  messages: "@anthropic-ai/sdk/resources/messages/messages.d.ts",
  betaMessages: "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts",
  chat: "openai/resources/chat/completions/completions.d.ts",
  responses: "openai/resources/responses/responses.d.ts",
  betaResponses: "openai/resources/beta/responses/responses.d.ts",
  shared: "openai/resources/shared.d.ts",
} as const;
export type File = keyof typeof files;

interface Declarations {
  /**
   * The key is the full name of an interface (`ResponseInputItem.Message`) that has a `type`; the value, the possible
   * values of `type`.
   */
  types: Map<string, string[]>;
  /** The key is the full name of an interface; the value, the possible values of its `role`. */
  roles: Map<string, string[]>;
  /**
   * The key is a full name; the value, what follows the equals sign of a type, the type of a property
   * (`Message.content`), or what follows `extends`.
   */
  aliases: Map<string, string>;
}

const opening = /^(?:export )?(?:declare )?(?:interface|namespace|class) (\w+)(?: extends ([\w.]+))?.*\{$/;
const alias = /^(?:export )?type (\w+) = (.+);$/;
const property = /^(\w+)\??: (.+);$/;

function parse(source: string): Declarations {
  const found: Declarations = { types: new Map(), roles: new Map(), aliases: new Map() };
  /** The declarations around a line, one for each level of indentation; null for an object without a name. */
  const around: (string | null)[] = [];
  for (const line of source.split("\n")) {
    const text = line.trim();
    const depth = (line.length - line.trimStart().length) / 4;
    around.length = Math.min(around.length, depth);
    const isNamed = depth === around.length && !around.includes(null);
    const within = around.join(".");
    const full = (name: string) => (within === "" ? name : `${within}.${name}`);
    const [, opened, parent] = opening.exec(text) ?? [];
    const [, name, value] = alias.exec(text) ?? property.exec(text) ?? [];
    if (opened) {
      if (parent) found.aliases.set(full(opened), parent);
      around[depth] = opened;
    } else if (text.endsWith("{")) around[depth] = null;
    else if (name && value && isNamed) {
      const words = [...value.matchAll(/'([^']+)'/g)].map((match) => match[1]!);
      if (name === "type" && words.length > 0) found.types.set(within, words);
      else if (name === "role" && words.length > 0) found.roles.set(within, words);
      else found.aliases.set(full(name), value);
    }
  }
  return found;
}

const parsed = Object.fromEntries(
  await Promise.all(
    Object.entries(files).map(async ([file, path]) => [file, parse(await Bun.file(join(modules, path)).text())]),
  ),
) as Record<File, Declarations>;

/** Every value that the `type` of any interface in the file may have. */
export function allTypes(file: File): string[] {
  return [...new Set([...parsed[file].types.values()].flat())].sort();
}

/**
 * The values of `type` of a union's members, by the union's name. Throws if the file has no such name: it was renamed
 * or removed.
 */
export function typesOf(file: File, name: string): string[] {
  return [...new Set(membersOf("types", file, name))].sort();
}

export function rolesOf(file: File, name: string): string[] {
  return [...new Set(membersOf("roles", file, name))].sort();
}

/** The prefixes by which the files import their own modules and the shared one. */
const imports = /^(ResponsesAPI|CompletionsAPI|ChatAPI|MessagesAPI|BetaMessagesAPI|BetaResponsesAPI|Shared)\./;

function membersOf(kind: "types" | "roles", file: File, name: string, within = ""): string[] {
  const home = name.startsWith("Shared.") ? "shared" : file;
  const bare = name.replace(imports, "");
  const { aliases, [kind]: words } = parsed[home];
  const known = [`${within}.${bare}`, bare].find((full) => words.has(full) || aliases.has(full));
  if (known === undefined) throw new Error(`${files[home]} has no ${bare} with a known form.`);
  const said = words.get(known);
  if (said) return said;
  return aliases
    .get(known)!
    .replaceAll(/Array<(.+?)>/g, "$1")
    .split("|")
    .map((member) => member.trim())
    .filter((member) => /^[A-Z]/.test(member))
    .flatMap((member) => membersOf(kind, home, member, known.split(".")[0]));
}
