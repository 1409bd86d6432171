/** The published contract of the management interface describes the actual responses. */
import { expect, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import { managementDocument } from "../../../src/admin/http/document.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { encode } from "../../../src/core/schema/codec.ts";

const document = managementDocument("1.0.0") as { components: object };
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema({ $id: "contract", components: document.components });
const fits = ajv.compile({ $ref: "contract#/components/schemas/Error" });
const changes = verbs.filter(({ kind }) => kind === "change");

test.each(changes.map((one) => [one.name, one] as const))("%s may conflict, with what is there", (_, one) => {
  const current = encode(one.answers, one.example.answer as never);
  const said = { message: "It changed.", type: "conflict", param: null, code: "version_conflict" };
  const error = { ...said, request_id: `req_${"0".repeat(32)}`, current };
  expect([fits({ error }), ajv.errorsText(fits.errors)]).toEqual([true, "No errors"]);
  expect(fits({ error: { ...error, current: { version: 1 } } })).toBe(false);
});
