// Creates X.509 certificates by encoding their DER here: a CI machine may have no openssl, and a certificate in the
// repository would expire some day, so it could not be used to test one that is about to expire.

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";

/** A certificate and its private key, both in PEM format. */
export interface Identity {
  certificate: string;
  key: string;
}

export interface Authority extends Identity {
  /** Issues a certificate. `names`: DNS names and addresses; the first is the common name, too. */
  issue(names: string[], valid?: Partial<Validity>): Identity;
}

interface Validity {
  from: Date;
  to: Date;
}

const day_ms = 86_400_000;

export function daysFromNow(days: number): Date {
  return new Date(Date.now() + days * day_ms);
}

export function authority(name = "a test's authority"): Authority {
  const keys = newKeys();
  const own = { name, keys };
  const extensions = [
    extension("551d13", true, sequence(boolean(true))),
    extension("551d0f", true, tagged(0x03, Buffer.from([1, 0x06]))),
    extension("551d0e", false, tagged(0x04, keyId(keys.publicKey))),
  ];
  return {
    ...identity(own, own, extensions),
    issue(names, valid) {
      const subject = { name: names[0]!, keys: newKeys() };
      const extended = [
        extension("551d11", false, sequence(...names.map(generalName))),
        extension("551d23", false, sequence(tagged(0x80, keyId(keys.publicKey)))),
      ];
      return identity(subject, own, extended, valid);
    },
  };
}

/**
 * Writes an identity into the folder as `NAME.crt` and `NAME.key`. `owner` gives each file to the user who reads it.
 */
export function written(folder: string, name: string, { certificate, key }: Identity, owner?: (path: string) => void) {
  const paths = { certificate: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  writeFileSync(paths.certificate, certificate);
  writeFileSync(paths.key, key);
  chmodSync(paths.certificate, 0o644);
  chmodSync(paths.key, 0o600);
  owner?.(paths.certificate);
  owner?.(paths.key);
  return paths;
}

interface Party {
  name: string;
  keys: { publicKey: KeyObject; privateKey: KeyObject };
}

function newKeys(): Party["keys"] {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" });
}

function identity(subject: Party, issuer: Party, extensions: Buffer[], valid: Partial<Validity> = {}): Identity {
  const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    distinguishedName(issuer.name),
    sequence(time(valid.from ?? daysFromNow(-1)), time(valid.to ?? daysFromNow(365))),
    distinguishedName(subject.name),
    subject.keys.publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", body, issuer.keys.privateKey);
  const der = sequence(body, ecdsaWithSha256, tagged(0x03, Buffer.from([0]), signature));
  const lines = der.toString("base64").match(/.{1,64}/g)!;
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: subject.keys.privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
}

function tagged(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const sequence = (...contents: Buffer[]) => tagged(0x30, ...contents);
const integer = (bytes: Buffer) => tagged(0x02, bytes);
const boolean = (value: boolean) => tagged(0x01, Buffer.from([value ? 0xff : 0]));
const objectId = (hex: string) => tagged(0x06, Buffer.from(hex, "hex"));
const keyId = (key: KeyObject) =>
  createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();

function distinguishedName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(objectId("550403"), tagged(0x0c, Buffer.from(name)))));
}

function time(date: Date): Buffer {
  return tagged(0x18, Buffer.from(`${date.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`));
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(objectId(id), ...(isCritical ? [boolean(true)] : []), tagged(0x04, value));
}

function generalName(name: string): Buffer {
  if (isIP(name) === 4) return tagged(0x87, Buffer.from(name.split(".").map(Number)));
  return tagged(0x82, Buffer.from(name));
}
