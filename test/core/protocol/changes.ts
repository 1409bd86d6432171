/** Bad input, by mutation: valid bodies with random changes, and the guarantees for the changed bodies. */
import { expect } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import type { contract } from "../../../src/core/protocol/contract.ts";
import { upstreams } from "./codecs.ts";
import { forAll } from "./for-all.ts";

type Path = (string | number)[];
type Change = { kind: "replace"; by: unknown } | { kind: "remove" } | { kind: "add"; key: string; by: unknown };

/**
 * One to three changes of a body, anywhere in it. `words` are values with a meaning in the body's protocol, `keys` the
 * names of members that a change may add.
 */
export function changesTo(valid: object, { words, keys }: { words: string[]; keys: string[] }): fc.Arbitrary<unknown> {
  const by = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...words, 0, 1, 2, -1, 1.5, 1e300));
  const change: fc.Arbitrary<Change> = fc.oneof(
    fc.record({ kind: fc.constant("replace" as const), by }),
    fc.record({ kind: fc.constant("remove" as const) }),
    fc.record({ kind: fc.constant("add" as const), key: fc.constantFrom(...keys), by }),
  );
  return (
    fc
      .array(fc.tuple(fc.nat(), change), { minLength: 1, maxLength: 3 })
      .map((changes) => changes.reduce((body: unknown, [at, how]) => changed(body, pick(places(body), at), how), valid))
      // Makes the body as it would arrive: JSON has no holes in arrays and no 1e400.
      .map((body) => JSON.parse(JSON.stringify(body)))
  );
}

const pick = <Item>(list: Item[], at: number): Item => list[at % list.length]!;

/** The paths of all values within a JSON value. */
function places(value: unknown, path: Path = []): Path[] {
  const inner = value !== null && typeof value === "object" ? Object.entries(value) : [];
  const step = (key: string) => (Array.isArray(value) ? Number(key) : key);
  return [path, ...inner.flatMap(([key, child]) => places(child, [...path, step(key)]))];
}

function changed(value: unknown, path: Path, change: Change): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return change.kind === "replace" ? change.by : value;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string | number, unknown>;
  if (rest.length === 0 && change.kind === "remove") delete copy[step];
  else if (rest.length === 0 && change.kind === "add") copy[change.key] = change.by;
  else copy[step] = changed(copy[step], rest, change);
  return copy;
}

export const anyChange =
  "any change to a valid body is refused with a client error whose path exists, or is missing; or it is accepted, and served";

/** Checks that any changed body is accepted, or refused with a client error, which `take` throws. */
export function answersAnyChange(bodies: fc.Arbitrary<unknown>, take: (body: unknown) => unknown, runs: number): void {
  forAll([bodies], runs, (body) => {
    try {
      take(body);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(Fault);
      const fault = thrown as Fault;
      expect(fault.status).toBe(400);
      expect(fault.message).not.toContain("does not match the contract");
      expect(fault.message).not.toContain("undefined");
      const param = fault.details.param;
      if (param === undefined) expect(typeof body !== "object" || body === null || Array.isArray(body)).toBe(true);
      else if (fault.code !== "missing_field") expect(fault.message).toContain(param);
    }
  });
}

/** Checks that the slow check, which says what is wrong, and the fast compiled check give the same verdict. */
export function agrees(check: ReturnType<typeof contract>, bodies: fc.Arbitrary<unknown>, runs: number): void {
  forAll([bodies], runs, (body) => {
    const clean = check.violation(body).message.includes("does not match the contract");
    expect(clean).toBe(check.satisfied(body));
  });
}

/**
 * Checks that a request that was accepted can be sent to an engine of any protocol, or is refused with the name of the
 * feature.
 */
export function reachesEngines(request: InferenceRequest): void {
  for (const upstream of Object.values(upstreams)) {
    try {
      const asked = JSON.parse(JSON.stringify(upstream.request.encode(request, ask)));
      expect((asked.messages ?? asked.input).length).toBeGreaterThan(0);
      expect(Object.values(asked)).not.toContain(null);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(Fault);
      expect((thrown as Fault).code).toBe("unsupported_feature");
    }
  }
}
const ask = { model: "engine", stream: true, outputTokens_max: 1000 };
