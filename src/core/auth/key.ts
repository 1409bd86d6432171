/**
 * The form of an API key. Pure: random bytes are an argument.
 *
 * `slk_` + 32 base62 characters (190 bits of chance) + 6 base62 characters of the CRC-32 over what stands before them. So
 * a mistyped key is refused without a look-up, and a secret scanner can tell a real one. Only the SHA-256 is ever stored:
 * the key is random, a slow hash would protect nothing. docs/design/keys.md, The form of a key.
 */
import type { NewSecret } from "../store/directory.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/**
 * `slk_`: a key, with which clients infer. `slo_`: an operator's token, with which operators administer. `slt_`: an access
 * token, which is a secret of a key and ends soon. `slr_`: a refresh token.
 */
export type SecretKind = "slk_" | "slo_" | "slt_" | "slr_";
const prefix_chars = 4;
const random_chars = 32;
const checksum_chars = 6;

/** Characters of a whole key. */
export const key_chars = prefix_chars + random_chars + checksum_chars;

/** How many random bytes `newKey` wants: twice what it uses, because one in 32 is thrown away to stay unbiased. */
export const key_random_bytes = 64;

/** The published regular expression for secret scanners. A text that matches is a key if its checksum is right. */
export const keyPattern = String.raw`\bslk_[0-9A-Za-z]{38}\b`;

/** The same for tokens of operators. */
export const operatorTokenPattern = String.raw`\bslo_[0-9A-Za-z]{38}\b`;

const wholeSecret = new RegExp(`^sl[kort]_[0-9A-Za-z]{${random_chars + checksum_chars}}$`);

/** A new key from `key_random_bytes` bytes of a cryptographic source. Throws RangeError when they do not suffice. */
export function newKey(random: Uint8Array, prefix: SecretKind = "slk_"): string {
  let body = "";
  for (const byte of random) {
    // 248 is the last multiple of 62: bytes above it would favour the head of the alphabet.
    if (byte >= 248) continue;
    body += alphabet[byte % 62];
    if (body.length === random_chars) return prefix + body + checksum(prefix + body);
  }
  throw new RangeError(`A key needs more random bytes than the ${random.length} given; ${key_random_bytes} suffice.`);
}

/** Whether this text has the form and the checksum of a key or an access token. It may still not exist. */
export function isKey(text: string): boolean {
  return isSecret("slk_", text) || isSecret("slt_", text);
}

/** Whether this text has the form and the checksum of a person's token. */
export function isToken(kind: "slt_" | "slr_", text: string): boolean {
  return isSecret(kind, text);
}

/** Whether this text has the form and the checksum of an operator's token. */
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

/** The part of a key that the directory stores: its hash, and for people its first 8 and last 4 characters. */
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
