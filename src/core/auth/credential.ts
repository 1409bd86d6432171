/**
 * Finds the key that a request carries. Pure.
 *
 * `Authorization: Bearer <key>` and `x-api-key: <key>` are both accepted on every route. Claude Code sends both with
 * different values, so the one that has the form of a Sluice key counts; if both have it, Bearer does. No look-up
 * happens here: whatever cannot be a Sluice key is refused at once, because some clients hammer a 401.
 *
 * The form of an API key. Pure: random bytes are an argument. `slk_` + 32 base62 characters (190 random bits) + 6
 * base62 characters of the CRC-32 over the characters before them. So a mistyped key is refused without a look-up, and
 * a secret scanner can tell a real one. Only the SHA-256 is ever stored: the key is random, so a slow hash would
 * protect nothing. docs/design/keys.md, The form of a key.
 */
import { Fault } from "../inference/fault.ts";
import type { NewSecret } from "../store/directory.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/**
 * `slk_`: a key, with which clients ask for inference. `slo_`: an operator's token, with which operators administer.
 * `slt_`: an access token, which is a secret of a key and expires soon. `slr_`: a refresh token.
 */
export type SecretKind = "slk_" | "slo_" | "slt_" | "slr_";
const prefix_chars = 4;
const random_chars = 32;
const checksum_chars = 6;

export const key_chars = prefix_chars + random_chars + checksum_chars;

/**
 * The number of random bytes that `newKey` needs: twice what it uses, because it discards one in 32 to stay unbiased.
 */
export const key_random_bytes = 64;

/** The published regular expression for secret scanners. A text that matches is a key if its checksum is right. */
export const keyPattern = String.raw`\bslk_[0-9A-Za-z]{38}\b`;

export const operatorTokenPattern = String.raw`\bslo_[0-9A-Za-z]{38}\b`;

const wholeSecret = new RegExp(`^sl[kort]_[0-9A-Za-z]{${random_chars + checksum_chars}}$`);

/** A new key from `key_random_bytes` bytes of a cryptographic source. Throws RangeError when they do not suffice. */
export function newKey(random: Uint8Array, prefix: SecretKind = "slk_"): string {
  let body = "";
  for (const byte of random) {
    // 248 is the largest multiple of 62 in a byte: larger bytes would make the first letters of the alphabet more
    // likely.
    if (byte >= 248) continue;
    body += alphabet[byte % 62];
    if (body.length === random_chars) return prefix + body + checksum(prefix + body);
  }
  throw new RangeError(`A key needs more random bytes than the ${random.length} given; ${key_random_bytes} suffice.`);
}

/**
 * Whether this text has the form and the checksum of a key or an access token. A key with this text may still not
 * exist.
 */
export function isKey(text: string): boolean {
  return isSecret("slk_", text) || isSecret("slt_", text);
}

export function isToken(kind: "slt_" | "slr_", text: string): boolean {
  return isSecret(kind, text);
}

export function isOperatorToken(text: string): boolean {
  return isSecret("slo_", text);
}

function isSecret(prefix: SecretKind, text: string): boolean {
  if (text.length !== key_chars || !text.startsWith(prefix) || !wholeSecret.test(text)) return false;
  const head = key_chars - checksum_chars;
  return checksum(text.slice(0, head)) === text.slice(head);
}

/** The SHA-256 of the whole key, 32 bytes, by which the directory finds it. */
export function hashKey(key: string): Uint8Array {
  return Bun.SHA256.hash(key) as Uint8Array;
}

/**
 * The part of a key that the directory stores: its hash, and its first 8 and last 4 characters, by which people
 * recognize it.
 */
export function secretOf(key: string): NewSecret {
  return { hash: hashKey(key), prefix: key.slice(0, 8), suffix: key.slice(-4) };
}

function checksum(text: string): string {
  let rest = Bun.hash.crc32(text);
  let digits = "";
  for (let place = 0; place < checksum_chars; place++) {
    digits = alphabet[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** The part of `Headers` that is used here. Repeated values are joined by commas, as in fetch. */
export interface HeaderSource {
  get(name: string): string | null;
}

/** A header that is longer than this is not searched for a Sluice key. */
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

/** A fault with the status 401, and with the challenge that HTTP asks for. */
export function unauthorized(
  code: `${"missing" | "invalid" | "expired" | "revoked"}_api_key` | `${"missing" | "invalid"}_operator_token`,
  message: string,
): Fault {
  return new Fault(code, message, { headers: { "www-authenticate": "Bearer" } });
}

const bearerForm = "Authorization: Bearer <API_KEY>";
const bearer = /^bearer(?:[ \t]+|$)/i;

/** The only key among these values. Two different keys are refused, because either could be meant. */
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

/**
 * Whether the header's value is empty, or only a scheme such as `Bearer`, because the variable for the key was not set.
 */
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
