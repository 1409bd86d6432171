/**
 * Reads the PEM files that the settings of upstreams and of the mail server name: certificates of trusted authorities,
 * and own certificates. Or collects the problems of these files.
 */
import type { TlsSettings } from "../core/upstream/http1/dial.ts";
import { readCertificates, readIdentity } from "./certificate.ts";
import type { UpstreamEntry } from "./settings/upstream.ts";
import type { ReadFile } from "./source.ts";

export interface TlsRead {
  /** The TLS settings of upstreams, by the names of the upstreams. */
  settings: ReadonlyMap<string, TlsSettings>;
  /** The certificate authorities trusted for the mail server; null: those that the system trusts. */
  smtpCa: string | null;
}
/** The parts of sluice.yaml that name files. */
interface Naming {
  upstreams?: Record<string, UpstreamEntry> | undefined;
  smtp?: Pick<Files, "ca_file"> | undefined;
}
type Files = NonNullable<UpstreamEntry["tls"]>;

export function tlsOf({ upstreams = {}, smtp = {} }: Naming, readFile: ReadFile): TlsRead | { problems: string[] } {
  const problems: string[] = [];
  const smtpCa = authorities(smtp, readFile);
  if ("problem" in smtpCa) problems.push(`smtp.${smtpCa.field}: ${smtpCa.problem}`);
  const settings = new Map<string, TlsSettings>();
  for (const [name, { tls }] of Object.entries(upstreams)) {
    if (!tls) continue;
    const ca = authorities(tls, readFile);
    const own = identity(tls, readFile);
    for (const read of [ca, own])
      if ("problem" in read) problems.push(`upstreams.${name}.tls.${read.field}: ${read.problem}`);
    if (!("problem" in ca) && !("problem" in own)) settings.set(name, { ca: ca.text, certificate: own.certificate });
  }
  return problems.length > 0 || "problem" in smtpCa ? { problems } : { settings, smtpCa: smtpCa.text };
}

function authorities({ ca_file }: Pick<Files, "ca_file">, readFile: ReadFile) {
  if (ca_file === undefined) return { text: null };
  const read = readCertificates(ca_file, readFile);
  return "problem" in read ? { field: "ca_file", ...read } : read;
}

function identity({ certificate_file, key_file }: Files, readFile: ReadFile) {
  if (certificate_file === undefined && key_file === undefined) return { certificate: null };
  if (certificate_file === undefined) return { field: "certificate_file", problem: "key_file needs it; give both" };
  if (key_file === undefined) return { field: "key_file", problem: "certificate_file needs it; give both" };
  const read = readIdentity({ certificateFile: certificate_file, keyFile: key_file }, readFile);
  if ("problem" in read) return { field: "certificate_file", ...read };
  return { certificate: { cert: read.identity.certificate, key: read.identity.key } };
}
