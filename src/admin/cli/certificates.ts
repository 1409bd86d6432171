/**
 * The findings of `sluice doctor` about a certificate: how long it is valid, and whether it covers the name that
 * clients call.
 */

export interface SeenCertificate {
  /**
   * The words that name the holder: `of Redis` if that server shows the certificate; `for Redis` if this program shows
   * it to that server.
   */
  whose: string;
  /** The name that clients call; null if it is not configured. */
  host: string | null;
  names: string[];
  begins: Date;
  expires: Date;
  isFor(host: string): boolean;
}

/** There is a warning during this many days before a certificate expires: enough time to renew it by hand. */
const expiry_days = 14;
const day_ms = 86_400_000;

export function judged(
  { host, names, begins, expires, isFor }: SeenCertificate,
  now_ms: number,
): { status: "ok" | "warning" | "problem"; says: string } {
  const day = (date: Date) => date.toISOString().slice(0, 10);
  if (begins.getTime() > now_ms) return { status: "problem", says: `not valid before ${begins.toISOString()}` };
  if (expires.getTime() <= now_ms) return { status: "problem", says: `expired on ${day(expires)}; renew it` };
  const left_days = Math.floor((expires.getTime() - now_ms) / day_ms);
  if (left_days < expiry_days) {
    return { status: "warning", says: `expires on ${day(expires)}, in ${left_days} days; renew it` };
  }
  const all = names.slice(0, 5).join(", ") || "no name";
  if (host !== null && !isFor(host)) return { status: "warning", says: `is for ${all}, not for ${host}` };
  return { status: "ok", says: `for ${all}, until ${day(expires)}` };
}
