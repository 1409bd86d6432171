/**
 * Encrypts small secrets at rest, such as an issuer's refresh tokens, with AES-256-GCM and the keys of
 * SLUICE_SECRET_KEY. The first key encrypts new secrets. Each key decrypts the secrets that it encrypted, so a key can
 * be replaced (docs/identity.md, The secret key). A secret is bound to the name of the place where it is stored: copied
 * to another place, it cannot be decrypted.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Sealing } from "../core/store/sealing.ts";

const form_byte = 1;
const keyId_bytes = 4;
const nonce_bytes = 12;
const tag_bytes = 16;
const head_bytes = 1 + keyId_bytes + nonce_bytes;
const key_bytes = 32;

/** The keys in the text of SLUICE_SECRET_KEY: one or two, each 32 bytes in base64. Null: the text has another form. */
export function secretKeysIn(text: string): Uint8Array[] | null {
  const keys = text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(keyIn);
  const isRight = keys.length >= 1 && keys.length <= 2 && keys.every((key) => key !== null);
  return isRight ? (keys as Uint8Array[]) : null;
}

function keyIn(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return null;
  const bytes = new Uint8Array(Buffer.from(text, "base64"));
  return bytes.length === key_bytes ? bytes : null;
}

/**
 * Makes the functions that encrypt and decrypt with these keys. `random`: returns bytes from a cryptographic source.
 */
export function sealing(keys: readonly Uint8Array[], random: (bytes: number) => Uint8Array): Sealing {
  const [first] = keys;
  if (!first) throw new RangeError("there is no key");
  const byId = new Map(keys.map((key) => [idOf(key).toHex(), key]));
  const keyOf = (sealed: Uint8Array) =>
    sealed.length >= head_bytes + tag_bytes && sealed[0] === form_byte
      ? byId.get(sealed.subarray(1, 1 + keyId_bytes).toHex())
      : undefined;
  return {
    seal(secret, about) {
      const head = Buffer.concat([Uint8Array.of(form_byte), idOf(first), random(nonce_bytes)]);
      const cipher = createCipheriv("aes-256-gcm", first, head.subarray(-nonce_bytes)).setAAD(aad(head, about));
      return new Uint8Array(Buffer.concat([head, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]));
    },
    open(sealed, about) {
      const key = keyOf(sealed);
      if (!key) return null;
      const head = sealed.subarray(0, head_bytes);
      const decipher = createDecipheriv("aes-256-gcm", key, head.subarray(-nonce_bytes)).setAAD(aad(head, about));
      decipher.setAuthTag(sealed.subarray(-tag_bytes));
      try {
        const text = [decipher.update(sealed.subarray(head_bytes, -tag_bytes)), decipher.final()];
        return Buffer.concat(text).toString("utf8");
      } catch {
        return null;
      }
    },
    isOutdated: (sealed) => keyOf(sealed) !== first,
  };
}

function aad(head: Uint8Array, about: string): Uint8Array {
  return Buffer.concat([head, Buffer.from(about, "utf8")]);
}

/** An id of the key that reveals nothing of the key. */
function idOf(key: Uint8Array): Uint8Array {
  const hash = Bun.SHA256.hash(Buffer.concat([Buffer.from("sluice secret key id\0"), key])) as Uint8Array;
  return hash.slice(0, keyId_bytes);
}
