// A sign-in that a browser has begun at an issuer, and the answer with which it comes back.
import type { IdentityParts } from "../../../src/features/identity/identity.ts";
import { beginSignIn, finishSignIn } from "../../../src/features/identity/sign-in.ts";
import type { SessionKind } from "../../../src/features/identity/store/browser-sessions.ts";
import { consoleUrl, serviceUrl } from "../../harness/identity-parts.ts";

export const redirectUris = { console: `${consoleUrl}/oauth/callback`, device: `${serviceUrl}/oauth/callback` };

interface Finishing {
  /** Fields of the issuer's answer, in place of the code and the state that it gives. */
  fields?: Record<string, string>;
  /** The browser's cookie; without this, the one that it got when the sign-in began. */
  cookie?: string | null;
  /** The kind of session whose sign-in the answer is taken for, if it is not the kind that was begun. */
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
