// Runs every case of cases.jsonl with every client in every mode, on one node: the client gets what `want` says, in
// strict accordance with its protocol. With TEST_ENGINES_TABLE=file, the outcomes are written to the file, one line per
// case.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { cases, type EngineCase } from "./case.ts";
import { spareAnswer } from "./engine.ts";
import { type CaseService, type Outcome, startCaseService } from "./service.ts";
import { elsewhere, furtherWants } from "./wants.ts";

const runnable = cases.filter(({ id }) => !(id in elsewhere));

let service: CaseService;
beforeAll(async () => {
  service = await startCaseService(runnable);
});
afterAll(() => service.stop());

const table: string[] = [];
afterAll(() => {
  const file = process.env.TEST_ENGINES_TABLE;
  if (file) writeFileSync(file, `${table.join("\n")}\n`);
});

test.each(Object.entries(elsewhere))("%s is not run here, but held elsewhere: %s", (id, held) => {
  expect(cases.some((one) => one.id === id)).toBe(true);
  expect(existsSync(held.split(": ")[1]!)).toBe(true);
});

test("every case that is run wants something", () => {
  expect(runnable.filter(({ id, want }) => want?.end === undefined && !furtherWants(id)).map(({ id }) => id)).toEqual(
    [],
  );
});

describe("an engine as it is", () => {
  for (const one of runnable)
    test(`${one.id} ${one.title ?? one.kind}`, async () => {
      const found = (await service.run(one)).flatMap((outcome) => flawsOf(one, outcome));
      table.push(`${one.id}\t${one.kind}\t${one.seen}\t${found.length === 0 ? "pass" : "FAIL"}\t${found.join("; ")}`);
      expect(found).toEqual([]);
    });
});

function flawsOf(one: EngineCase, outcome: Outcome): string[] {
  const { client, mode, problems } = outcome;
  const { want = {} } = one;
  const flaws = problems.map((problem) => `contract: ${problem}`);
  const isSaved = mode === "p" && want.end === "fail";
  const end = isSaved ? "stop" : want.end;
  const flaw = (what: string, seen: unknown, wanted: unknown) => {
    if (!Bun.deepEquals(seen, wanted)) flaws.push(`${what} is ${JSON.stringify(seen)}, not ${JSON.stringify(wanted)}`);
  };
  if (end !== undefined && outcome.end !== end) flaw("end", `${outcome.end} ${outcome.status} ${outcome.error}`, end);
  if (isSaved) flaw("text", outcome.text, spareAnswer.text);
  if (want.text !== undefined && !isSaved) flaw("text", outcome.text, want.text);
  if (want.calls) flaw("calls", outcome.calls, want.calls);
  for (const [name, count] of Object.entries(want.usage ?? {}))
    flaw(name, outcome.usage[name as keyof Outcome["usage"]], count);
  if (outcome.hasHalves) flaws.push("a half of a character");
  flaws.push(...(furtherWants(one.id)?.(outcome) ?? []));
  return flaws.map((text) => `${client} ${mode}: ${text}`);
}
