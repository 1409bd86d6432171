import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { credentialOf, newKey } from "../../../src/core/auth/credential.ts";
import { faultOf } from "../../harness/faults.ts";

const key = newKey(crypto.getRandomValues(new Uint8Array(64)));
const other = newKey(crypto.getRandomValues(new Uint8Array(64)));

function from(headers: Record<string, string> | [string, string][]): string {
  return credentialOf(new Headers(headers));
}

const fault = (headers: Record<string, string> | [string, string][]) => faultOf(() => from(headers))!;

describe("where a request carries its key", () => {
  test("a bearer token and x-api-key are both accepted", () => {
    expect(from({ authorization: `Bearer ${key}` })).toBe(key);
    expect(from({ "x-api-key": key })).toBe(key);
  });

  test("the scheme's case and odd spaces do not matter", () => {
    for (const value of [`bearer ${key}`, `BEARER ${key}`, `Bearer   ${key}  `, `Bearer\t${key}`, `bEaReR \t ${key}`]) {
      expect(from({ authorization: value })).toBe(key);
    }
    expect(from({ "x-api-key": `  ${key}\t` })).toBe(key);
  });

  test("of two values the one with our key's form counts; if both have it, Bearer", () => {
    expect(from({ authorization: "Bearer sk-ant-oat01-not-ours", "x-api-key": key })).toBe(key);
    expect(from({ authorization: `Bearer ${key}`, "x-api-key": "sk-ant-api03-not-ours" })).toBe(key);
    expect(from({ authorization: `Bearer ${key}`, "x-api-key": other })).toBe(key);
    expect(from({ authorization: `Bearer ${"j".repeat(9000)}`, "x-api-key": key })).toBe(key);
    expect(from({ authorization: "Bearer ", "x-api-key": key })).toBe(key);
  });

  test("a repeated header counts when it says one thing, and is refused when it says two", () => {
    const twice = (a: string, b: string): [string, string][] => [
      ["authorization", `Bearer ${a}`],
      ["authorization", `Bearer ${b}`],
    ];
    expect(from(twice(key, key))).toBe(key);
    expect(from(twice("sk-else", key))).toBe(key);
    expect(fault(twice(key, other)).code).toBe("invalid_api_key");
  });

  test("no key at all is missing_api_key, and says how to send one", () => {
    for (const authorization of ["", "Bearer", "Bearer  ", null]) {
      const missing = fault(authorization === null ? {} : { authorization });
      expect(missing.code).toBe("missing_api_key");
      expect(missing.status).toBe(401);
      expect(missing.details.headers).toEqual({ "www-authenticate": "Bearer" });
      expect(missing.message).toContain("Authorization: Bearer");
    }
    expect(fault({ "x-api-key": " " }).code).toBe("missing_api_key");
  });

  test("what cannot be a key is invalid_api_key, with a word on what is wrong", () => {
    for (const value of [
      "Basic dXNlcjpwYXNz",
      "Bearer null",
      `Bearer ${key}x`,
      `Bearer "${key}"`,
      `Bearer: ${key}`,
      `Bearer${key}`,
      "Bearer \u00e9\u00ff",
      `Bearer ${"g".repeat(10_000)}`,
      ",".repeat(10_000),
      " ".repeat(10_000),
      key,
    ]) {
      const refused = fault({ authorization: value });
      expect([value.slice(0, 20), refused.code]).toEqual([
        value.slice(0, 20),
        value.trim() ? "invalid_api_key" : "missing_api_key",
      ]);
      expect(refused.details.headers).toEqual({ "www-authenticate": "Bearer" });
    }
    expect(fault({ authorization: key }).message).toContain("has no scheme");
    expect(fault({ authorization: "Basic dXNlcjpwYXNz" }).message).toContain("Authorization: Bearer");
    expect(fault({ authorization: `Bearer ${key.slice(0, -1)}` }).message).toContain("copied all of it");
    const token = newKey(crypto.getRandomValues(new Uint8Array(64)), "slo_");
    for (const headers of [{ authorization: `Bearer ${token}` }, { "x-api-key": token }] as const)
      expect(fault(headers).message).toContain("That is an operator token");
  });

  test("no message repeats what was sent", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 12, maxLength: 60 }), (text) => {
        const sent = `slk_${text.replace(/[^!-~]/g, "x")}`;
        const forms: Record<string, string>[] = [
          { authorization: `Bearer ${sent}` },
          { authorization: sent },
          { "x-api-key": sent },
        ];
        for (const headers of forms) {
          const { message, details } = fault(headers);
          expect(message + JSON.stringify(details)).not.toContain(sent);
        }
      }),
    );
    const half = fault({ authorization: `Bearer ${key.slice(0, 41)}` });
    expect(half.message).not.toContain(key.slice(4, 20));
  });
});
