/** The PEM files that upstreams name → what is trusted and who we are, or what is wrong with them. */
import { createSecureContext } from "node:tls";
import type { TlsSettings } from "../upstream/http1/dial.ts";
import type { UpstreamEntry } from "./schema.ts";
import { type ReadFile, reasonOf } from "./source.ts";

type Read = { settings: ReadonlyMap<string, TlsSettings> } | { problems: string[] };

export function tlsOf(upstreams: Record<string, UpstreamEntry>, readFile: ReadFile): Read {
  const problems: string[] = [];
  const settings = new Map<string, TlsSettings>();
  for (const [name, { tls }] of Object.entries(upstreams)) {
    if (!tls) continue;
    const text = (field: keyof typeof tls): string | null => {
      const path = tls[field];
      if (path === undefined) return null;
      const found = pem(path, readFile);
      if ("text" in found) return found.text;
      problems.push(`upstreams.${name}.tls.${field}: ${found.problem}`);
      return null;
    };
    const [ca, cert, key] = [text("ca_file"), text("certificate_file"), text("key_file")];
    if ((tls.certificate_file === undefined) !== (tls.key_file === undefined)) {
      problems.push(`upstreams.${name}.tls: certificate_file and key_file belong together; give both`);
    }
    const certificate = cert !== null && key !== null ? { cert, key } : null;
    if (certificate && !areAPair(certificate)) {
      problems.push(`upstreams.${name}.tls: the key of key_file does not belong to certificate_file`);
    }
    settings.set(name, { ca, certificate });
  }
  return problems.length > 0 ? { problems } : { settings };
}

function pem(path: string, readFile: ReadFile): { text: string } | { problem: string } {
  try {
    const bytes = readFile(path);
    if (bytes === null) return { problem: "there is no such file" };
    const text = new TextDecoder().decode(bytes);
    return text.includes("-----BEGIN ") ? { text } : { problem: "is not in PEM" };
  } catch (cause) {
    return { problem: `cannot be read: ${reasonOf(cause)}` };
  }
}

function areAPair(pair: { cert: string; key: string }): boolean {
  try {
    createSecureContext(pair);
    return true;
  } catch {
    return false;
  }
}
