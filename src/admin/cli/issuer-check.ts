/** The findings of `sluice doctor` about an identity issuer: its discovery document, keys, clock and claims. */
import type { Issuer } from "../../core/auth/identity.ts";
import { clockTolerance_s, type IssuerClients } from "../../features/identity/issuer-clients.ts";
import { Warning } from "./warning.ts";

const answer_ms = 5000;
const algorithmOfKind: Record<string, RegExp> = { RSA: /^(RS|PS)/, EC: /^ES/, OKP: /^EdDSA$/ };

interface Keys {
  keys?: { kty?: string; alg?: string; use?: string }[];
}

/**
 * Checks an issuer, and returns the result in one sentence. Throws an Error, or a Warning, that says what is wrong and
 * what to do.
 */
export async function issuerSays(issuer: Issuer, issuers: IssuerClients, now_ms: () => number): Promise<string> {
  const { metadata } = await issuers.of(issuer);
  const answer = await fetch(metadata.jwks_uri!, { signal: AbortSignal.timeout(answer_ms), redirect: "error" });
  const off_s = clockDifference(answer, now_ms());
  const usable = usableKeys(issuer, (await answer.json()) as Keys);
  if (usable === 0)
    throw new Error(
      `none of its keys signs with ${issuer.algorithms.join(", ")}; add the algorithm of its tokens to 'algorithms'`,
    );
  if (off_s !== null && Math.abs(off_s) > clockTolerance_s)
    throw new Error(
      `its clock and this one differ by ${Math.abs(off_s)} seconds, and ${clockTolerance_s} are allowed; synchronise the clocks`,
    );
  warnOfClaims(issuer, metadata);
  return `responds, with ${usable === 1 ? "a key" : `${usable} keys`} for ${issuer.algorithms.join(", ")}`;
}

/** The seconds by which the issuer's clock is ahead; null if the response has no date. */
function clockDifference(answer: Response, now_ms: number): number | null {
  const at_ms = Date.parse(answer.headers.get("date") ?? "");
  return Number.isNaN(at_ms) ? null : Math.round((at_ms - now_ms) / 1000);
}

function usableKeys({ algorithms }: Issuer, { keys = [] }: Keys): number {
  const fits = ({ kty = "", alg, use = "sig" }: NonNullable<Keys["keys"]>[number]) =>
    use === "sig" &&
    algorithms.some((one) => (alg === undefined ? algorithmOfKind[kty]?.test(one) === true : one === alg));
  return keys.filter(fits).length;
}

function warnOfClaims(issuer: Issuer, { claims_supported, scopes_supported }: Record<string, unknown>): void {
  const lacks = (list: unknown, name: string) => Array.isArray(list) && !list.includes(name);
  if (lacks(claims_supported, issuer.groupsClaim))
    throw new Warning(
      `it does not list the claim '${issuer.groupsClaim}'; rules on groups match nobody unless it sends it all the same`,
    );
  if (issuer.clientId !== null && issuer.scopes.includes("offline_access") && lacks(scopes_supported, "offline_access"))
    throw new Warning("it does not list the scope offline_access; sign-ins of devices then last 24 hours");
}
