// Attacks with request bodies that the limits just allow, of three sizes: as many values, names and levels as allowed.

import { filled as withDefaults } from "../../src/config/settings/row.ts";
import { sections } from "../../src/config/settings/sections.ts";
import { bytesPerMember, bytesPerName, bytesPerValue } from "../../src/core/body/scan.ts";
import type { Attack } from "./attack.ts";
import { asking, type BodyOptions, body, filled, listed, mib, padded, paths, saying, schema } from "./body.ts";

const { messages, responses, count } = paths;
const limits = withDefaults(sections.limits.properties);

export const allowedBodies: readonly Attack[] = [0.25, 4, 30].flatMap(ofSize);

/** How many members, names and values the body may have, besides the few of the request itself. */
function allowance(bytes: number) {
  const few = 100;
  return {
    members: limits.body_members_max + Math.floor(bytes / bytesPerMember) - few,
    names: limits.body_names_max + Math.floor(bytes / bytesPerName) - few,
    values: limits.body_values_max + Math.floor(bytes / bytesPerValue) - few,
  };
}

function ofSize(size_mib: number): Attack[] {
  const bytes = size_mib * mib;
  const room = bytes - 1000;
  const allowed = allowance(bytes);
  // In a small body, as many values or members as the limits allow do not fit even in their shortest form.
  const members = Math.min(allowed.members, Math.floor(bytes / 20));
  const values = Math.min(allowed.values, Math.floor(bytes / 12));
  const one = (name: string, options: BodyOptions, text: (model: string) => string) =>
    body(`${name}, ${size_mib} MiB`, { isQuick: false, ...options }, (model) => padded(text(model), bytes));
  const quick = { isQuick: size_mib === 4 };
  const turns = () => shortTurns(Math.min(100_000, members / 2));
  return [
    one("chains of names of their own", quick, (model) => schema(model, `"x":[${chains(members, allowed.names)}]`)),
    one("objects of one name each", {}, (model) =>
      schema(model, `"x":[${listed(Math.min(members, values / 2), (at) => `{"k${at % allowed.names}":0}`)}]`),
    ),
    one("as many fields as may be", { path: responses }, (model) =>
      asking(
        model,
        listed(members, (at) => `"k${at % allowed.names}":0`),
      ),
    ),
    one("as many unknown fields", { wanted: "400" }, (model) =>
      asking(
        model,
        listed(members, (at) => `"k${at % allowed.names}":0`),
      ),
    ),
    one("empty arrays", {}, (model) => schema(model, `"x":[${listed(values / 2, () => "[]")}]`)),
    one("small strings", {}, (model) => schema(model, `"x":[${listed(values, (at) => `"s${at}"`)}]`)),
    one("small strings to stop at", { wanted: "400" }, (model) =>
      asking(model, `"stop":[${listed(values, () => '"s"')}]`),
    ),
    one("numbers", {}, (model) =>
      schema(model, `"x":[${listed(Math.min(values, room / 26), () => "1.2345678901234567e-30")}]`),
    ),
    one("parts, the last one bad", { path: messages, wanted: "400" }, (model) =>
      saying(model, `[${listed(Math.min(9_999, members / 2), () => '{"type":"text","text":"a"}')},{"type":"x"}]`),
    ),
    one("short messages", { ...quick, path: messages }, (model) => conversation(model, "messages", turns())),
    one("short items", { path: responses }, (model) => conversation(model, "input", turns())),
    one("short messages, counted twice", { path: count, parallel: 2 }, (model) =>
      conversation(model, "messages", turns()),
    ),
    one("a long string", {}, (model) => saying(model, `"${filled("hello world ", room)}"`)),
    one("escapes", quick, (model) => saying(model, `"${filled("\\n\\t", room)}"`)),
    one("escaped nothing", {}, (model) => saying(model, `"${filled("\\u0000", room)}"`)),
    one("escaped quotes", {}, (model) => saying(model, `"${filled('\\"', room)}"`)),
    one("beyond Latin", {}, (model) => saying(model, `"${filled("é€😀", room * 0.4)}"`)),
    one("a number of many digits", { wanted: "400" }, (model) => asking(model, `"seed":${filled("7", room)}`)),
    one("a pattern that backtracks", {}, (model) => schema(model, `"pattern":"${filled("(a+)+", room)}$"`)),
    one("a long name of a model", { wanted: "400" }, () => asking(filled("m", room), '"n":1')),
    one("blanks", {}, (model) => saying(model, '"hi"')),
    one("not closed", { wanted: "400" }, (model) => asking(model, `"x":[${listed(values, () => "1")}`).slice(0, -1)),
  ];
}

/**
 * Nested objects, each with a member name of its own until `names` are used up. This is the most expensive input for a
 * parser.
 */
function chains(members: number, names: number): string {
  const depth = 80;
  const chain = (at: number) => {
    const opening = Array.from({ length: depth }, (_, level) => `{"a${(at * depth + level) % names}":`).join("");
    return `${opening}0${"}".repeat(depth)}`;
  };
  return listed(members / depth, chain);
}

/** A conversation of short turns. Their number is odd, so that the last turn is the user's. */
function shortTurns(turns: number): string {
  return listed(
    turns - 1 + (Math.floor(turns) % 2),
    (at) => `{"role":"${at % 2 ? "assistant" : "user"}","content":"a"}`,
  );
}

function conversation(model: string, field: string, turns: string): string {
  const cap = field === "input" ? '"store":false' : '"max_tokens":10';
  return `{"model":"${model}",${cap},"${field}":[${turns}]}`;
}
