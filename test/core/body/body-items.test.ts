/**
 * A body of which most was sent before is parsed to the same value as without the cache of items, and no organization's
 * body finds items of another.
 */
import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { BodyItems } from "../../../src/core/body/body-items.ts";
import { ItemCache } from "../../../src/core/body/item-cache.ts";
import { parsingSteps, readJson } from "../../../src/core/body/read.ts";
import { BodyScan } from "../../../src/core/body/scan.ts";
import { brokenText, soundText } from "../../fuzz/json-text.ts";
import { cutAt } from "../../harness/cut.ts";
import { forAll } from "../protocol/for-all.ts";

const lists = ["messages", "tools", "system"];
const mib = 1024 * 1024;
const newCache = (bytes_max = mib) => new ItemCache(bytes_max, 1);

interface Read {
  /** The parsed value as JSON, or the refusal. */
  outcome: string;
  shape: { bytes: number; depth: number; values: number; members: number };
  marks: unknown;
  /** The number of items that were found in the cache. */
  found: number;
  unseen: Readonly<Record<string, readonly unknown[]>> | null;
}

/** Reads a body in pieces, and stores its items in the cache if the body is valid. */
function read(text: string, { cache, owner = "one", cuts = [] }: Reading): Read {
  const bytes = new TextEncoder().encode(text);
  const items = cache ? new BodyItems(cache, owner, lists) : null;
  const shape = new BodyScan(items);
  for (const piece of cutAt(bytes, cuts)) shape.take(piece);
  const { depth, values, members, marks } = shape;
  const seen = { shape: { bytes: shape.bytes, depth, values, members }, marks };
  let value: unknown;
  try {
    const steps = parsingSteps({ bytes, shape });
    for (let step = steps.next(); ; step = steps.next()) {
      if (!step.done) continue;
      value = step.value.value;
      break;
    }
  } catch (fault) {
    return { ...seen, outcome: String(fault), found: 0, unseen: null };
  }
  const unseen = items?.unseen() ?? null;
  const found = items?.found.items ?? 0;
  items?.keep(bytes);
  return { ...seen, outcome: JSON.stringify(value), found, unseen };
}

interface Reading {
  cache: ItemCache | null;
  owner?: string;
  cuts?: readonly number[];
}

/** Reads a body twice, because items are kept only when they are seen for the second time. */
function readTwice(text: string, reading: Reading): void {
  for (let time = 0; time < 2; time++) read(text, reading);
}

const message = (content: string) => ({ role: "user", content: `${content} ${"in words ".repeat(8)}` });
const body = (...contents: string[]) => JSON.stringify({ model: "m", messages: contents.map(message), stream: true });

/**
 * Items (`pool`) that several bodies share, some of them with names that repeat. The padding makes an item large enough
 * to be cached.
 */
const padding = `"pad":"${"x".repeat(60)}"`;
const pool = [
  `{"role":"user","content":"${"long ".repeat(20)}\\n\\"quoted\\" é😀"}`,
  `{"role":"user","role":"tool",${padding}}`,
  `{"__proto__":{"a":1},${padding}}`,
  `{${padding},"deep":${"[".repeat(30)}${"]".repeat(30)}}`,
  `{${padding},"half":"\\ud83d","number":1e999,"whole":9007199254740993}`,
  `{ ${padding} ,\n "of":[{"a":{"messages":[{"x":1}]}},{}] }`,
  "{}",
  "0",
  "1",
  '"text"',
  "[[1],[2]]",
];
const item = fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...pool) }, { weight: 1, arbitrary: soundText });
/** The text between two items: mostly a comma, sometimes characters that make the list invalid. */
const between = fc.oneof(
  { weight: 60, arbitrary: fc.constantFrom(",", " ,\n", "\t, ") },
  { weight: 1, arbitrary: fc.constantFrom("", ",,", "1", ":", "]", ",[", ',"a":', "}", ",{") },
);
const list = fc
  .array(fc.tuple(item, between), { maxLength: 8 })
  .map((items) => `[${items.map(([text, mark], at) => (at < items.length - 1 ? text + mark : text)).join("")}]`);
const name = fc.constantFrom('"messages"', '"tools"', '"messages" ', '"mess\\u0061ges"', '"other"', '"__proto__"');
const someMembers = fc
  .array(fc.tuple(name, fc.oneof({ weight: 8, arbitrary: list }, { weight: 1, arbitrary: brokenText })), {
    maxLength: 4,
  })
  .map((members) => `{"model":"m"${members.map(([key, value]) => `,${key}:${value}`).join("")}}`);
const bothLists = fc
  .tuple(list, list)
  .map(([messages, tools]) => `{"model":"m","messages":${messages},"metadata":{"a":[1,2]},"tools":${tools}}`);
/** A text that several bodies share. `beside` is what comes before or after it. */
const text = fc.constantFrom(
  `"${"You help. ".repeat(9)}"`,
  `"${"x".repeat(70)}\\""`,
  '"short"',
  `"${"é😀\\ud83d ".repeat(9)}"`,
);
const beside = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("", " ", "\n") },
  { weight: 1, arbitrary: fc.constantFrom(":", "1", '"', "[", "]", ',"system":"x"', ',"syst\\u0065m":0') },
);
const withText = fc
  .tuple(bothLists, text, beside, beside)
  .map(([body, system, before, behind]) => `${body.slice(0, -1)},"system":${before}${system}${behind}}`);
const anyBody = fc.oneof(
  { weight: 2, arbitrary: bothLists },
  { weight: 2, arbitrary: withText },
  { weight: 1, arbitrary: someMembers },
);
const cuts = fc.array(fc.nat(), { maxLength: 4 });

describe("any bodies, one after the other, cut anywhere", () => {
  test("have the shapes, the values and the refusals that each has by itself", () => {
    let found = 0;
    forAll([fc.array(fc.tuple(anyBody, cuts), { minLength: 2, maxLength: 5 })], 3_000, (bodies) => {
      const cache = newCache();
      for (const [text, at] of bodies) {
        const alone = read(text, { cache: null, cuts: at });
        const after = read(text, { cache, cuts: at });
        expect<Read>({ ...after, found: 0, unseen: null }).toEqual(alone);
        found += after.found;
      }
    });
    expect(found).toBeGreaterThan(1_000);
  });

  test("say of each item whether it was there before", () => {
    forAll([anyBody, anyBody], 1_000, (first, second) => {
      const cache = newCache();
      readTwice(first, { cache });
      const { unseen, found, outcome } = read(second, { cache });
      if (!unseen) return;
      const value = JSON.parse(outcome) as Record<string, unknown>;
      const all = lists.flatMap((key) => (Array.isArray(value[key]) ? (value[key] as unknown[]) : []));
      const texts = typeof value.system === "string" ? 1 : 0;
      const left = all.length - found;
      expect([left, left + texts]).toContain(Object.values(unseen).flat().length);
    });
  });
});

describe("a conversation that goes on", () => {
  const turns = ["first", "second", "third", "fourth"];

  test("has only its new message to be read and checked", () => {
    const cache = newCache();
    readTwice(body(...turns), { cache });
    const next = read(body(...turns, "fifth"), { cache });
    expect(next.found).toBe(4);
    expect(next.unseen).toEqual({ messages: [message("fifth")] });
  });

  test("is followed in its order: only a new message is hashed and looked for", () => {
    const cache = newCache();
    readTwice(body(...turns), { cache });
    const find = spyOn(cache, "find");
    read(body(...turns, "fifth"), { cache });
    expect(find).toHaveBeenCalledTimes(1);
  });

  test.each([
    ["a message that was changed", ["first", "changed", "third", "fourth"], 3],
    ["a message that was put in", ["first", "put in", "second", "third", "fourth"], 4],
    ["a message that was left out", ["first", "third", "fourth"], 3],
    ["another order", ["fourth", "first", "third"], 3],
  ])("and one with %s has the others from before", (_, contents, found) => {
    const cache = newCache();
    readTwice(body(...turns), { cache });
    expect(read(body(...contents), { cache }).found).toBe(found);
  });

  test("beside others keeps its place", () => {
    const cache = newCache();
    for (const who of ["a", "b", "a", "b"]) read(body("shared", ...turns.map((turn) => who + turn)), { cache });
    expect(read(body("shared", ...turns.map((turn) => `a${turn}`), "new"), { cache }).found).toBe(5);
  });
});

describe("nothing is found", () => {
  const sent = body("one", "two");

  test("by another owner", () => {
    const cache = newCache();
    readTwice(sent, { cache, owner: "one" });
    expect(read(sent, { cache, owner: "other" }).found).toBe(0);
    expect(read(sent, { cache, owner: "one" }).found).toBe(2);
  });

  test("in another list", () => {
    const cache = newCache();
    readTwice(sent, { cache });
    expect(read(sent.replace('"messages"', '"tools"'), { cache }).found).toBe(0);
  });

  test("of a body with names that repeat, or that was never kept", () => {
    const cache = newCache();
    const twice = `{"messages":[1],${sent.slice(1)}`;
    readTwice(twice, { cache });
    expect(read(sent, { cache }).found).toBe(0);
    expect(read(twice, { cache }).outcome).toBe(read(twice, { cache: null }).outcome);
  });

  test("that was not used for two generations", () => {
    const cache = newCache();
    readTwice(sent, { cache });
    cache.age();
    expect(read(sent, { cache }).found).toBe(2);
    cache.age();
    cache.age();
    expect(cache.size).toBe(0);
    expect(read(sent, { cache }).found).toBe(0);
  });
});

test.each([
  ["a number before it", (item: string) => `[1${item}]`],
  ["a number behind it", (item: string) => `[${item}1]`],
  ["a sign before it", (item: string) => `[-${item}]`],
  ["an exponent behind it", (item: string) => `[${item}e5]`],
  ["no comma before it", (item: string) => `[{}${item}]`],
  ["another bracket behind it", (item: string) => `[${item}}`],
  ["a name before it", (item: string) => `["a":${item}]`],
])("an item that was seen before, with %s, makes no sound body", (_, around) => {
  const cache = newCache();
  const item = JSON.stringify(message("one"));
  readTwice(`{"messages":[${item}]}`, { cache });
  const text = `{"messages":${around(item)}}`;
  expect(read(text, { cache }).outcome).toBe(read(text, { cache: null }).outcome);
  expect(read(text, { cache }).outcome).toContain("not valid JSON");
});

test.each(['"messages"', '"mess\\u0061ges"'])(
  "of a list that a body has twice, the second as %s, the last one counts",
  (name) => {
    const cache = newCache();
    const item = JSON.stringify(message("one"));
    readTwice(`{"messages":[${item}]}`, { cache });
    const text = `{"messages":[${item}],${name}:[0]}`;
    expect(read(text, { cache }).outcome).toBe('{"messages":[0]}');
  },
);

test("names of items that were passed over count together", async () => {
  const cache = newCache();
  const limits = {
    ...{ body_bytes_max: mib, body_read_ms: 1_000, body_ratio_max: 100, body_depth_max: 100 },
    ...{ body_values_max: 10_000, body_members_max: 10_000, body_names_max: 100 },
  };
  const names = (letter: string) => Array.from({ length: 80 }, (_, at) => `"${letter}_${at}":${at}`).join(",");
  const sent = async (text: string) => {
    const headers = { "content-type": "application/json", "content-length": `${text.length}` };
    const request = new Request("http://node/", { method: "POST", headers, body: text });
    const itemsOf = () => new BodyItems(cache, "one", lists);
    (await readJson(request, limits, () => {}, { itemsOf })).keepItems();
  };
  const [messages, tools] = [`"messages":[{${names("a")}}]`, `"tools":[{${names("b")}}]`];
  for (const text of [`{${messages}}`, `{${messages}}`, `{${tools}}`, `{${tools}}`]) await sent(text);
  await expect(sent(`{${messages},${tools}}`)).rejects.toThrow("different names");
});

test("the cache stays within its bound, and items in use stay longest", () => {
  const cache = newCache(200_000);
  const used = body("used one", "used two");
  for (let at = 0; at < 2_000; at++) {
    readTwice(body(`message ${at}`), { cache });
    read(used, { cache });
    expect(cache.bytes).toBeLessThanOrEqual(200_000);
  }
  expect(read(used, { cache }).found).toBe(2);
  expect(read(body("message 0"), { cache }).found).toBe(0);
});

test("an item that is seen once is not kept", () => {
  const cache = newCache();
  read(body("one"), { cache });
  const before = cache.size;
  expect(read(body("one"), { cache }).found).toBe(0);
  expect([before, cache.size]).toEqual([1, 2]);
});

test("a body that would displace the others is not kept", () => {
  const cache = newCache(200_000);
  const small = body("small");
  readTwice(small, { cache });
  readTwice(body(...Array.from({ length: 200 }, (_, at) => `large ${at}`)), { cache });
  expect(read(small, { cache }).found).toBe(1);
});
