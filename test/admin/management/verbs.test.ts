/** Checks of every verb in the list, including verbs that are added later. */
import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { client } from "../../../src/admin/management/client.ts";
import type { ListCommand, ThingCommand } from "../../../src/admin/management/command.ts";
import { ManagementError } from "../../../src/admin/management/error.ts";
import { verbsOf } from "../../../src/admin/management/verb.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { managementFaultCodes } from "../../../src/core/inference/fault.ts";
import { grouped } from "../../../src/core/inference/money.ts";
import { encode } from "../../../src/core/schema/codec.ts";
import { roles } from "../../../src/features/identity/store/operators.ts";

function refusal(work: () => unknown): ManagementError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof ManagementError) return thrown;
    throw thrown;
  }
  throw new Error("was accepted");
}

type Given = Record<string, unknown>;

/**
 * Members of a verb's result that the text output leaves out, because another member says the same, or because no
 * reader needs them.
 */
const unprinted = ["provider", "organization_id", "object", "changed_at"];
/** Columns of tables that may be empty in the verbs' examples. */
const sparse = ["RAISED UNTIL", "LIMITS", "FROM", "PERSON", "PROBLEM"];

/** The formats in which a value may be shown to people: `2,000`, the date of a time. */
function read(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(read);
  if (typeof value === "number") return [grouped(value)];
  return typeof value === "string" ? [value.replace(/T[\d:.]+Z$/, "")] : [];
}

interface Shape {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  properties?: Record<string, Shape>;
  patternProperties?: Record<string, Shape>;
  propertyNames?: Shape;
  additionalProperties?: unknown;
  items?: Shape;
  anyOf?: Shape[];
}

interface Place {
  path: string;
  shape: Shape;
}

/**
 * A schema and all schemas within it, each with its path. The names of a map count as texts of any format, unless the
 * schema restricts them.
 */
function placesIn(shape: Shape, path = ""): Place[] {
  const below = [
    ...Object.entries({ ...shape.properties, ...shape.patternProperties }),
    ...(shape.items ? [["[]", shape.items] as const] : []),
    ...(shape.patternProperties ? [["its names", shape.propertyNames ?? { type: "string" }] as const] : []),
    ...(shape.anyOf ?? []).map((branch) => ["", branch] as const),
  ];
  return [{ path, shape }, ...below.flatMap(([name, one]) => placesIn(one, `${path} ${name}`.trim()))];
}

/** The paths within a schema at which people choose the text. */
const textsIn = (whole: Shape) =>
  placesIn(whole).filter(
    ({ shape }) => shape.type === "string" && shape.enum === undefined && shape.const === undefined,
  );

test("each has a name and a route of its own", () => {
  expect(new Set(verbs.map(({ name }) => name)).size).toBe(verbs.length);
  expect(new Set(verbs.map(({ method, path }) => `${method} ${path}`)).size).toBe(verbs.length);
});

describe.each(verbs.map((one) => [one.name, one] as const))("%s", (_, one) => {
  test("takes its example, and nothing that it does not name", () => {
    expect(() => one.take(one.example.takes)).not.toThrow();
    const stray = refusal(() => one.take({ ...one.example.takes, stray: 1 }));
    expect([stray.code, stray.details.param]).toEqual(["unknown_field", "stray"]);
    for (const odd of [null, 7, "text", [], undefined]) expect(refusal(() => one.take(odd)).status).toBe(400);
  });

  test("takes no member that it does not name inside another one either", () => {
    const open = placesIn(one.input as Shape).filter(
      ({ path, shape }) =>
        path !== "" && shape.properties && !shape.propertyNames && shape.additionalProperties !== false,
    );
    expect(open.map(({ path }) => path)).toEqual([]);
  });

  test("refuses each member of its example with a value of another type, and names it", () => {
    for (const name of Object.keys(one.example.takes)) {
      const wrong = refusal(() => one.take({ ...one.example.takes, [name]: [[]] }));
      expect([name, wrong.code, wrong.details.param?.startsWith(name)]).toEqual([name, "invalid_value", true]);
    }
  });

  test("takes no text with characters that no name may have, wherever the text is", () => {
    const open = textsIn(one.input as Shape).filter(({ shape: { pattern } }) =>
      ["a\u0000b", "a\u202eb", "a\nb"].some((bad) => pattern === undefined || new RegExp(pattern, "u").test(bad)),
    );
    expect(open.map(({ path }) => path)).toEqual([]);
  });

  test("takes texts with spaces around them as without", () => {
    const spaced = Object.entries(one.example.takes).map(([name, value]) => [
      name,
      typeof value === "string" ? ` ${value}\n` : value,
    ]);
    expect(one.take(Object.fromEntries(spaced))).toEqual(one.take(one.example.takes));
  });

  test("has its id in its path where it names one", () => {
    expect(one.path.includes("{id}")).toBe(one.id !== null);
    if (one.id !== null) expect(Object.keys(one.example.takes)).toContain(one.id);
  });

  test("says what it refuses, as its kind demands", () => {
    expect(one.roles.every((role) => role === "member" || roles.includes(role))).toBe(true);
    expect(one.roles).toContain("admin");
    for (const code of one.faults) expect(managementFaultCodes).toContain(code as never);
    expect(one.faults.includes("idempotency_key_reused")).toBe(one.kind === "creation");
    expect(one.faults.includes("version_conflict")).toBe(one.kind === "change");
    if (one.id !== null) expect(one.faults).toContain("resource_not_found");
    if (one.kind === "change") expect(encode(one.answers, one.example.answer)).toHaveProperty("version");
    expect(one.method === "get").toBe(one.kind === "reading");
  });

  test("prints each value of its example as facts, and has no empty column in a table", () => {
    const { takes, answer } = one.example as { takes: Given; answer: unknown };
    const command = one.command as ThingCommand<Given, unknown> | ListCommand<Given, unknown> | undefined;
    if (!command) return;
    if ("columns" in command) {
      const [row] = (answer as { data: unknown[] }).data;
      const empty = command.columns.filter(({ cell, bar }) => !bar && cell(row, 0) === "").map(({ head }) => head);
      expect(empty.filter((head) => !sparse.includes(head))).toEqual([]);
      return;
    }
    const words = command.says(answer, takes, 0);
    // A change may report only a part of what has changed.
    if (one.kind !== "reading" && typeof words === "object" && "pieces" in words) return;
    if (typeof words === "string") return;
    const printed = JSON.stringify(words);
    const left = Object.entries(encode(one.answers, answer as never) as Given).filter(
      ([name, value]) => !unprinted.includes(name) && read(value).some((text) => !printed.includes(text)),
    );
    expect(left).toEqual([]);
  });

  test("reaches a transport as JSON, and its answer comes back as a value", async () => {
    const sent: unknown[] = [];
    const manage = client(async (reached, json) => {
      sent.push([reached.name, json]);
      return JSON.parse(JSON.stringify(encode(one.answers, one.example.answer)));
    });
    const call = manage[one.name as keyof typeof manage] as (given: unknown) => Promise<unknown>;
    expect(await call(one.take(one.example.takes))).toEqual(one.example.answer);
    expect(sent).toMatchObject([[one.name, {}]]);
  });
});

const verb = verbsOf("Usage");

test("a verb without roles, faults or an example is none to the compiler", () => {
  const act = async () => ({ done: true });
  const whole = {
    name: "act",
    route: "POST /act",
    summary: "Act",
    description: "",
    roles: ["admin"],
    kind: "act",
    faults: [],
    takes: Type.Object({}),
    answers: Type.Object({ done: Type.Boolean() }),
    example: { takes: {}, answer: { done: true } },
    act,
  } as const;
  verb(whole);
  const { roles: _r, ...withoutRoles } = whole;
  // @ts-expect-error: the roles are missing.
  verb(withoutRoles);
  // @ts-expect-error: the list of roles is empty.
  verb({ ...whole, roles: [] });
  const { faults: _f, ...withoutFaults } = whole;
  // @ts-expect-error: the faults are missing.
  verb(withoutFaults);
  const { example: _e, ...withoutExample } = whole;
  // @ts-expect-error: the example is missing.
  verb(withoutExample);
  // @ts-expect-error: the result of `act` does not fit the schema `answers`.
  verb({ ...whole, act: async () => ({ done: "yes" }) });
});
