/** Reads, checks and describes certificates and keys in PEM files. No message shows their contents. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { compact } from "../core/protocol/json.ts";
import { fileText } from "./secret.ts";
import { file_bytes_max, type ReadFile } from "./source.ts";

export interface IdentityFiles {
  /** The file with the certificate, followed by the intermediate certificates. */
  certificateFile: string;
  keyFile: string;
}

/** The certificate and key by which a server or a client identifies itself, in PEM. */
export interface Identity {
  certificate: string;
  key: string;
}

/** Reads a certificate and its key. `problem`: a sentence that begins with the name of a file. */
export function readIdentity(
  { certificateFile, keyFile }: IdentityFiles,
  readFile: ReadFile,
): { identity: Identity } | { problem: string } {
  const certificate = readCertificates(certificateFile, readFile);
  if ("problem" in certificate) return certificate;
  const key = fileText(keyFile, readFile, file_bytes_max);
  if ("problem" in key) return { problem: `${keyFile}, ${key.problem}` };
  const identity = { certificate: certificate.text, key: key.text };
  try {
    const own = createPrivateKey(key.text);
    if (new X509Certificate(certificate.text).checkPrivateKey(own)) return { identity };
  } catch {
    return { problem: `${keyFile}, which holds no private key in PEM without a passphrase` };
  }
  return { problem: `${keyFile}, which does not belong to the certificate in ${certificateFile}` };
}

/** Reads a file of certificates in PEM, the first of which must be readable. */
export function readCertificates(path: string, readFile: ReadFile): { text: string } | { problem: string } {
  const found = fileText(path, readFile, file_bytes_max);
  if ("problem" in found) return { problem: `${path}, ${found.problem}` };
  try {
    new X509Certificate(found.text);
    return found;
  } catch {
    return { problem: `${path}, which holds no certificate in PEM` };
  }
}

interface Described {
  /** The names and addresses for which the certificate is valid. */
  names: string[];
  begins: Date;
  expires: Date;
  isFor(host: string): boolean;
}

/** Describes a certificate, whose `text` is PEM or DER. */
export function described(text: string | Uint8Array): Described {
  const certificate = new X509Certificate(text);
  const { subjectAltName, validFrom, validTo } = certificate;
  const names = (subjectAltName ?? "").split(", ").map((name) => name.replace(/^(DNS|IP Address):/, ""));
  return {
    names: names.filter(Boolean),
    begins: new Date(validFrom),
    expires: new Date(validTo),
    isFor: (host) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined,
  };
}

export interface TlsFiles {
  /** The file of the trusted authorities; null: the system's are trusted. */
  caFile: string | null;
  identity: IdentityFiles | null;
}

interface TlsTexts {
  ca?: string;
  cert?: string;
  key?: string;
}

/**
 * Returns a function that reads the files at each call. While a file cannot be read, it returns the last good texts.
 */
export function tlsTexts(files: TlsFiles | undefined, readFile: ReadFile): () => TlsTexts {
  let last: TlsTexts = {};
  return () => {
    const ca = files?.caFile ? readCertificates(files.caFile, readFile) : { text: undefined };
    const own = files?.identity ? readIdentity(files.identity, readFile) : { identity: undefined };
    if (!("problem" in ca) && !("problem" in own)) {
      last = compact({ ca: ca.text, cert: own.identity?.certificate, key: own.identity?.key });
    }
    return last;
  };
}
