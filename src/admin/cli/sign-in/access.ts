/**
 * The secret with which this user calls a server now: the key, or an access token that is valid for some time to come.
 */

import { shellWord } from "../../management/shell-word.ts";
import type { Services } from "../services.ts";
import { type KeptSignIns, type KeptTokens, keptSignIns } from "./kept.ts";
import { KeyStoreAway } from "./key-store.ts";
import { forgotten, type KeptSecret, replaced, revealed } from "./secrets.ts";
import { endpointsAt, isRefused, ServerAway, type TokenAnswer, tokensFor } from "./service.ts";

export interface Access {
  url: string;
  secret: string;
  kind: "person" | "key";
}

/**
 * Returns the secret for calls to a server. `typed`: the server; undefined: the server of the newest sign-in. Throws an
 * Error that says how to sign in.
 */
export async function accessTo(services: Services, typed: string | undefined): Promise<Access> {
  const kept = keptSignIns(services);
  const url = chosenServer(kept, typed);
  const signIn = kept.read(url);
  if (!signIn) throw new Error(`You are not signed in at ${url}. Run: sluice login ${shellWord(url)}`);
  if (signIn.kind === "key") return { url, secret: await revealed(services, url, signIn.key), kind: "key" };
  const held = services.now_ms() < signIn.renew_at_ms ? signIn : await renewed(services, kept, url);
  return { url, secret: held.access_token, kind: "person" };
}

/**
 * Like accessTo, for a caller that prints the secret. An agent whose token was refused (401) runs the command again
 * sooner than usual. So a token that was printed recently is first checked at the server, and renewed if the server
 * refuses it.
 */
export async function accessToGive(services: Services, typed: string | undefined): Promise<Access> {
  const access = await accessTo(services, typed);
  if (access.kind === "key") return access;
  const kept = keptSignIns(services);
  const { url, secret } = access;
  const isDead = kept.givenLately(url) && (await isRefused(url, secret));
  const given = isDead ? (await renewed(services, kept, url, secret)).access_token : secret;
  kept.noteGiven(url);
  return { ...access, secret: given };
}

export function chosenServer(kept: KeptSignIns, typed: string | undefined): string {
  const url = typed ?? kept.current();
  if (url === null) throw new Error("You are not signed in. Run: sluice login https://sluice.example");
  return url;
}

/**
 * Renews the access token. `refused`: an access token that the server no longer accepts, although the token has not
 * expired.
 */
async function renewed(
  services: Services,
  kept: KeptSignIns,
  url: string,
  refused: string | null = null,
): Promise<KeptTokens> {
  return kept.locked(url, async () => {
    const signIn = kept.read(url);
    if (signIn?.kind !== "person") throw ended(url);
    const isRefused = signIn.access_token === refused;
    // Another process has renewed the token meanwhile.
    if (!isRefused && services.now_ms() < signIn.renew_at_ms) return signIn;
    const holds = !isRefused && services.now_ms() < signIn.ends_at_ms;
    if (signIn.refresh_token === null) {
      if (holds) return signIn;
      kept.remove(url);
      throw ended(url);
    }
    try {
      const next = await refreshed(services, url, { ...signIn, refresh_token: signIn.refresh_token });
      if (next) kept.write(url, next);
      else kept.remove(url);
      if (next) return next;
      await forgotten(services, url, signIn.refresh_token);
    } catch (thrown) {
      // The server or the key store is unavailable now; the current token works until it expires.
      if ((thrown instanceof ServerAway || thrown instanceof KeyStoreAway) && holds) return signIn;
      throw thrown;
    }
    throw ended(url);
  });
}

const ended = (url: string) => new Error(`Your sign-in at ${url} has ended. Run: sluice login ${shellWord(url)}`);

/** The renewed tokens. Null: the server reports that the sign-in has ended. */
async function refreshed(
  services: Services,
  url: string,
  { email, refresh_token }: KeptTokens & { refresh_token: KeptSecret },
): Promise<KeptTokens | null> {
  const fields = { grant_type: "refresh_token", refresh_token: await revealed(services, url, refresh_token) };
  const answer = await tokensFor(url, await endpointsAt(url), fields);
  if (!("error" in answer)) {
    const next = answer.refresh_token;
    const kept = next === undefined ? null : await replaced(services, url, refresh_token, next);
    return { ...tokensOf(services, answer), email, refresh_token: kept };
  }
  if (answer.error === "invalid_grant") return null;
  throw new ServerAway(answer.description);
}

/**
 * The tokens of the server's response in the form in which they are stored. A token is renewed when a sixth of its
 * lifetime is left.
 */
export function tokensOf({ now_ms }: Services, answer: TokenAnswer): KeptTokens {
  const lasts_ms = answer.expires_in * 1000;
  return {
    kind: "person",
    email: answer.email ?? null,
    access_token: answer.access_token,
    refresh_token: answer.refresh_token ?? null,
    renew_at_ms: now_ms() + (lasts_ms * 5) / 6,
    ends_at_ms: now_ms() + lasts_ms,
  };
}
