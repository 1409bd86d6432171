// A certificate authority, and what it has signed: certificates of a server named localhost, and of a client. openssl makes
// them when a test needs them.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "sluice-certificates-"));
const at = (name: string) => join(folder, name);

function openssl(...words: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...words], { cwd: folder, stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`openssl ${words[0]}: ${stderr.toString()}`);
}

const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=Test authority", "-keyout", "ca.key", "-out", "ca.pem");

function signed(name: string, extension: string): { cert: string; key: string } {
  writeFileSync(at(`${name}.ext`), extension);
  openssl("req", "-new", ...key, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
  const by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", `${name}.ext`];
  openssl("x509", "-req", "-in", `${name}.csr`, ...by, "-out", `${name}.pem`);
  return { cert: readFileSync(at(`${name}.pem`), "utf8"), key: readFileSync(at(`${name}.key`), "utf8") };
}

export const certificate = signed("server", "subjectAltName=DNS:localhost");
/** A certificate of the same authority for another name. */
export const othersCertificate = signed("other", "subjectAltName=DNS:other.test");
export const clientPair = signed("client", "extendedKeyUsage=clientAuth");
export const authority = readFileSync(at("ca.pem"), "utf8");
rmSync(folder, { recursive: true });
