import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  asFault,
  Fault,
  type FaultCode,
  faultCatalogue,
  managementStatusOf,
} from "../../../src/core/inference/fault.ts";

interface Row {
  code: string;
  status: number;
  type: string;
  messages: string;
}

/**
 * The codes in docs/errors.md, each with the error types of its status, or with its own types if the page lists them.
 */
async function documentedRows(): Promise<Row[]> {
  const document = await Bun.file(join(import.meta.dir, "../../../docs/errors.md")).text();
  const types = new Map(
    [...document.matchAll(/^\| ([\d, ]+|`\w+`) \| (\w+_error)[^|]*\| (\w+)[^|]*\|$/gm)].flatMap(
      ([, whose, type, messages]) => whose!.split(", ").map((one) => [one, { type: type!, messages: messages! }]),
    ),
  );
  return [...document.matchAll(/^\| (\d{3}) \| `(\w+)` \|/gm)].map(([, status, code]) => ({
    code: code!,
    status: Number(status),
    ...(types.get(`\`${code}\``) ?? types.get(status!) ?? { type: "none", messages: "none" }),
  }));
}

describe("the fault catalogue", () => {
  test("is what docs/errors.md tells: each code once, with its status and its type in both families", async () => {
    const rows = await documentedRows();
    const catalogue: Row[] = Object.entries(faultCatalogue).map(([code, { status, type, messages }]) => ({
      code,
      status,
      type,
      messages,
    }));
    const byCode = (a: Row, b: Row) => a.code.localeCompare(b.code);
    expect(rows.sort(byCode)).toEqual(catalogue.sort(byCode));
  });

  test("has another status in the management interface where docs/errors.md says so, and nowhere else", async () => {
    const document = await Bun.file(join(import.meta.dir, "../../../docs/errors.md")).text();
    const said = [...document.matchAll(/^\| \d{3} \| `(\w+)` .*The management interface answers (\d{3})/gm)];
    expect(said.length).toBeGreaterThan(0);
    const others = new Map(said.map(([, code, status]) => [code, Number(status)]));
    for (const [code, { status }] of Object.entries(faultCatalogue))
      expect([code, managementStatusOf(code as FaultCode)]).toEqual([code, others.get(code) ?? status]);
  });

  test("an unknown thing that was thrown is a defect of ours, and shows nothing of itself", () => {
    const fault = asFault(new Error("connect ECONNREFUSED 10.0.0.7:5432"));
    expect(fault).toMatchObject({ code: "internal_error", status: 500 });
    expect(fault.message).not.toContain("10.0.0.7");
    expect(String(fault.details.cause)).toContain("10.0.0.7");
  });

  test("a fault that was thrown stays itself", () => {
    const fault = new Fault("model_not_found", "No such model.");
    expect(asFault(fault)).toBe(fault);
  });
});
