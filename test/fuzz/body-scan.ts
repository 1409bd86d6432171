// Compares the scanner of request bodies, and the parser that works in steps, with slow reference implementations.

import fc from "fast-check";
import { parseInSteps } from "../../src/core/body/json-steps.ts";
import { BodyScan, type BodyShape } from "../../src/core/body/scan.ts";
import { cutAt } from "../harness/cut.ts";
import { type Fuzzer, law, same } from "./fuzzer.ts";
import { brokenText, soundText, textOf, type Written, written } from "./json-text.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const anyBytes = fc.oneof(
  brokenText.map(bytesOf),
  fc.array(fc.constantFrom(...bytesOf('"\\[]{},:ax ')), { maxLength: 400 }).map((bytes) => Uint8Array.from(bytes)),
  fc.uint8Array({ maxLength: 200 }),
);
/** The duration of the parser's steps, and the length from which a string counts as long. */
const pace = fc.record({ step_ns: fc.integer({ min: 1, max: 5_000 }), long_bytes: fc.nat(20) });
const cuts = fc.array(fc.nat(), { maxLength: 8 });

export const bodyScanFuzzer: Fuzzer = {
  name: "body-scan",
  properties: {
    "a sound text has the shape of its value": law(written, fc.constantFrom("", " \n"), (value, blank) => {
      const { depth, values, members, names } = scanned([bytesOf(textOf(value, blank))]);
      same({ depth, values, members }, shapeOf(value));
      const named = namesOf(value).size;
      same({ none: names === 0, tooMany: names > named }, { none: named === 0, tooMany: false });
    }),
    "any bytes have the shape that a walk byte by byte finds, however they are cut": law(
      anyBytes,
      cuts,
      (bytes, at) => {
        const { names, ...shape } = scanned(cutAt(bytes, at));
        same(shape, walked(bytes));
        same(names > shape.members, false);
      },
    ),
    "parsed in steps, a text is what JSON.parse makes of it": law(
      fc.oneof(soundText, brokenText),
      pace,
      (text, { step_ns, long_bytes }) =>
        same(
          outcome(() => inSteps(bytesOf(text), step_ns, long_bytes)),
          outcome(() => parsed(bytesOf(text))),
        ),
    ),
    "and what is no UTF-8 is none": law(anyBytes, pace, (bytes, { step_ns, long_bytes }) => {
      same(
        outcome(() => inSteps(bytes.slice(), step_ns, long_bytes)),
        outcome(() => parsed(bytes)),
      );
    }),
  },
};

function scanned(pieces: Uint8Array[]): BodyShape {
  const scan = new BodyScan();
  for (const piece of pieces) scan.take(piece);
  const { bytes, depth, values, members, names } = scan;
  return { bytes, depth, values, members, names };
}

type CountedShape = Omit<BodyShape, "bytes" | "names">;

function shapeOf(value: Written): CountedShape {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 0, members: 0 };
  const inner = Array.isArray(value) ? value : value.members.map(([, item]) => item);
  const shapes = inner.map(shapeOf);
  const sum = (of: (shape: CountedShape) => number) => shapes.reduce((all, shape) => all + of(shape), 0);
  return {
    depth: 1 + Math.max(0, ...shapes.map(({ depth }) => depth)),
    values: 1 + Math.max(0, inner.length - 1) + sum(({ values }) => values),
    members: (Array.isArray(value) ? 0 : inner.length) + sum(({ members }) => members),
  };
}

function namesOf(value: Written): Set<string> {
  if (typeof value !== "object" || value === null) return new Set();
  if (Array.isArray(value)) return new Set(value.flatMap((item) => [...namesOf(item)]));
  return new Set(value.members.flatMap(([name, item]) => [name, ...namesOf(item)]));
}

function walked(bytes: Uint8Array): Omit<BodyShape, "names"> {
  const shape = { bytes: bytes.length, depth: 0, values: 0, members: 0 };
  let level = 0;
  let inString = false;
  let isEscaped = false;
  for (const byte of bytes) {
    const mark = String.fromCharCode(byte);
    if (inString) {
      if (!isEscaped && mark === '"') inString = false;
      isEscaped = !isEscaped && mark === "\\";
    } else if (mark === '"') inString = true;
    else if (mark === ",") shape.values++;
    else if (mark === ":") shape.members++;
    else if ("[{".includes(mark)) {
      shape.values++;
      shape.depth = Math.max(shape.depth, ++level);
    } else if ("]}".includes(mark)) level--;
  }
  return shape;
}

function inSteps(bytes: Uint8Array, step_ns: number, long_bytes: number): unknown {
  const sent = Buffer.from(bytes);
  const steps = parseInSteps(bytes, { step: step_ns, long: long_bytes });
  for (;;) {
    const step = steps.next();
    if (!step.done) continue;
    const { value, isIntact } = step.value;
    // A body that the scanner reports as intact may be sent to an engine unchanged.
    if (isIntact && !sent.equals(bytes)) throw new Error("the bytes are not what they were");
    return value;
  }
}

function parsed(bytes: Uint8Array): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
}

/** The result as JSON, with its members in their order; `refused` if the work throws. */
function outcome(work: () => unknown): string {
  try {
    return JSON.stringify(work());
  } catch {
    return "refused";
  }
}
