/**
 * Which key a request carries. Pure.
 *
 * `Authorization: Bearer <key>` and `x-api-key: <key>` are both accepted on every route. Claude Code sends both with
 * different values, so the one that has our key's form counts; if both have it, Bearer does. No look-up happens here:
 * whatever cannot be a key of ours is refused at once, because some clients hammer a 401.
 */
import { Fault } from "../inference/fault.ts";
import { isKey, isOperatorToken, key_chars } from "./key.ts";

/** The part of `Headers` that is used here. Repeated values are joined by commas, as in fetch. */
export interface HeaderSource {
  get(name: string): string | null;
}

/** A header longer than this holds no key of ours, and is not searched for one. */
const header_chars_max = 4096;

/** The key's text, of right form and checksum. Throws Fault `missing_api_key` or `invalid_api_key`. */
export function credentialOf(headers: HeaderSource): string {
  const authorization = headers.get("authorization") ?? "";
  // Nearly all clients send only this header, in this form.
  const sole = authorization.startsWith("Bearer ") ? authorization.slice("Bearer ".length) : "";
  if (isKey(sole)) return sole;
  const apiKey = headers.get("x-api-key") ?? "";
  const key = theKey(bearerValues(authorization)) ?? theKey(valuesOf(apiKey));
  if (key) return key;
  if (isBlank(authorization) && isBlank(apiKey)) {
    throw unauthorized("missing_api_key", `This request has no API key. Send it as '${bearerForm}'.`);
  }
  throw unauthorized("invalid_api_key", whatIsWrong(authorization, apiKey));
}

/** The longest identity token that is looked at. */
export const token_chars_max = 16 * 1024;
const bearerToken = /^bearer +(eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*)$/i;

/** The token of `Authorization`, if it is one Bearer token in the form of a JWT; else null. It may still be invalid. */
export function identityTokenOf(headers: HeaderSource): string | null {
  const authorization = headers.get("authorization");
  if (authorization === null || authorization.length > token_chars_max + "Bearer ".length) return null;
  return bearerToken.exec(authorization)?.[1] ?? null;
}

/** A 401, with the challenge that HTTP asks for. */
export function unauthorized(
  code: `${"missing" | "invalid" | "expired" | "revoked"}_api_key` | `${"missing" | "invalid"}_operator_token`,
  message: string,
): Fault {
  return new Fault(code, message, { headers: { "www-authenticate": "Bearer" } });
}

const bearerForm = "Authorization: Bearer <API_KEY>";
const bearer = /^bearer(?:[ \t]+|$)/i;

/** The one key among these values. Two different keys are refused, because either could be meant. */
function theKey(values: string[]): string | null {
  const keys = new Set(values.filter(isKey));
  if (keys.size > 1) {
    throw unauthorized("invalid_api_key", "This request has several different API keys. Send exactly one.");
  }
  return keys.values().next().value ?? null;
}

function bearerValues(header: string): string[] {
  return valuesOf(header).flatMap((value) => (bearer.test(value) ? [value.replace(bearer, "")] : []));
}

function valuesOf(header: string): string[] {
  if (header.length === 0 || header.length > header_chars_max) return [];
  return header.split(",").map((value) => value.replace(/^[ \t]+|[ \t]+$/g, ""));
}

/** Whether the value is empty, or a scheme alone, as an unset variable leaves it. */
function isBlank(header: string): boolean {
  return header.length <= header_chars_max && valuesOf(header).every((value) => value.replace(bearer, "") === "");
}

/** The message of a 401. It says what to do, and never repeats what was sent. */
function whatIsWrong(authorization: string, apiKey: string): string {
  if (valuesOf(authorization).some(isKey)) {
    return `The Authorization header has no scheme. Send it as '${bearerForm}'.`;
  }
  if ([...bearerValues(authorization), ...valuesOf(apiKey)].some(isOperatorToken)) {
    return "That is an operator token, which opens the management interface alone. Send an API key, which begins with 'slk_'.";
  }
  if (isBlank(apiKey) && !bearer.test(authorization.trimStart())) {
    return `The Authorization header does not have the form '${bearerForm}'. Send the API key in this form.`;
  }
  return `The API key is not valid. A key of this service starts with 'slk_' and has ${key_chars} characters. Check that you copied all of it.`;
}
