/** Reads the certificate of a Postgres server, trusted or not, for `sluice doctor`. */
import { TLSSocket } from "node:tls";
import { addressOf } from "./address.ts";
import { dialled } from "./dial.ts";

export interface Presented {
  host: string;
  /** The certificate in DER. */
  certificate: Uint8Array;
}

/** The certificate; null if the address asks for no TLS, or the server has none or does not answer. */
export async function presented(url: string, connect_ms: number): Promise<Presented | null> {
  const { places, security } = addressOf(url);
  const place = places[0];
  if (security.mode === "disable" || !place || "path" in place) return null;
  const encrypted = { security: { ...security, mode: "require", authorities: null } as const };
  try {
    const socket = await dialled([place], encrypted, connect_ms);
    const raw = socket instanceof TLSSocket ? socket.getPeerCertificate().raw : null;
    socket.destroy();
    return raw ? { host: place.host, certificate: raw } : null;
  } catch {
    return null;
  }
}

/** The file of the client's certificate for this database, or null. */
export function clientCertificateFile(url: string): string | null {
  return addressOf(url).security.certificate?.file ?? null;
}
