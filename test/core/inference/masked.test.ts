/** Tests for docs/design/keys.md, No message repeats a secret. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { ManagementError } from "../../../src/admin/management/error.ts";
import { key_random_bytes, newKey } from "../../../src/core/auth/credential.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { masked, maskedDeep } from "../../../src/core/inference/masked.ts";
import { forAll } from "../protocol/for-all.ts";

const secretOf = (prefix: string) =>
  newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes))).replace("slk_", prefix);

test.each([
  ["slk_", "<key>"],
  ["slo_", "<token>"],
  ["slt_", "<token>"],
  ["slr_", "<token>"],
])("a secret that begins with %s is cut out wherever it stands, whole, in part or encoded", (prefix, shown) => {
  const secret = secretOf(prefix);
  expect(masked(`a ${secret} b,${secret}`)).toBe(`a ${shown} b,${shown}`);
  expect(masked(`x${secret.slice(0, 20)}.`)).toBe(`x${shown}.`);
  for (const written of [secret.replace("_", "%5F"), secret.toUpperCase()])
    expect(masked(`/${written}/`)).toBe(`/${shown}/`);
  forAll(
    [fc.string(), fc.string()],
    100,
    (before, after) => !masked(before + secret + after).includes(secret.slice(4, 20)),
  );
});

test("what people may see of a secret stays, and so does everything else", () => {
  for (const text of ["slk_3fJk…Zk9w", "begins with 'slk_'", "key_0199aa", "slalom_course", ""])
    expect(masked(text)).toBe(text);
  expect(maskedDeep({ name: secretOf("slo_"), list: [1, null, "slk_3fJk…Zk9w"], none: undefined })).toEqual({
    name: "<token>",
    list: [1, null, "slk_3fJk…Zk9w"],
  } as never);
});

test("no error repeats one, in its message or as the name of a field", () => {
  const fault = new Fault("unknown_field", `There is no field '${secretOf("slt_")}'.`, { param: secretOf("slr_") });
  expect([fault.message, fault.details.param]).toEqual(["There is no field '<token>'.", "<token>"]);
  expect(new ManagementError(`There is no plan '${secretOf("slo_")}'.`).message).toBe("There is no plan '<token>'.");
});
