// Starts a sign-in of a browser at an issuer, and finishes it with the issuer's redirect.
import type { IdentityParts } from "../../../src/features/identity/identity.ts";
import { beginSignIn, finishSignIn } from "../../../src/features/identity/sign-in.ts";
import type { SessionKind } from "../../../src/features/identity/store/browser-sessions.ts";
import { consoleUrl, serviceUrl } from "../../harness/identity-parts.ts";

export const redirectUris = { console: `${consoleUrl}/oauth/callback`, device: `${serviceUrl}/oauth/callback` };

interface Finishing {
  /** Query fields of the redirect, in place of the code and the state that the issuer would send. */
  fields?: Record<string, string>;
  /** The browser's cookie; by default the one that it got when the sign-in started. */
  cookie?: string | null;
  /** The kind of session that the redirect claims to finish, if it differs from the one that was started. */
  at?: SessionKind;
  now_ms?: () => number;
}

export async function begun(parts: IdentityParts, kind: SessionKind, issuer: string | null) {
  const redirectUri = redirectUris[kind];
  const { url, cookie: given } = await beginSignIn(parts, { kind, issuer, redirectUri, returnTo: "/" });
  const { state, nonce } = Object.fromEntries(url.searchParams) as { state: string; nonce: string };
  const finish = ({ fields, cookie = given, at = kind, now_ms = parts.now_ms }: Finishing = {}) => {
    const answer = new URL(`${redirectUri}?${new URLSearchParams({ code: "c", state, ...fields })}`);
    return finishSignIn({ ...parts, now_ms }, { kind: at, answer, cookie });
  };
  return { url, nonce, cookie: given, finish };
}
