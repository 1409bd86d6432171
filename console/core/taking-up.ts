/**
 * Takes up a session: the one that a sign-in has just begun, as the address says; this tab's own; or that of another
 * tab of the same browser. The script in the document does it, while the files of the pages are still on their way
 * (early.ts).
 */
import { keptOrganization, keptSecret, keptWanted } from "./kept.ts";
import { Refusal, request, type Sent } from "./request.ts";

export interface Membership {
  organization_id: string;
  organization: string;
  role: "member" | "organization-admin";
  team?: string;
  models?: string[] | null;
}

export interface Session {
  kind: "person" | "operator";
  /** The id of the person; absent for an operator. */
  id?: string;
  name: string;
  email?: string;
  role: string | null;
  memberships: Membership[];
  embedded: boolean;
  base_url: string;
  /** The URL of the issuer's page for signing out. */
  sign_out_url?: string;
  /** The verbs that the signed-in person may call. */
  verbs: string[];
}

export interface TakenUp {
  secret: string | null;
  /** The session. Null although there is a secret: the server could not confirm the session now. */
  session: Session | null;
  /** The organization for which the session was requested. Null: the server chooses. */
  organization: string | null;
  /** Why nobody is signed in. */
  problem: string | null;
}

const answer_ms = 250;
export const question = "who?";
export const secretChannel = () => new BroadcastChannel("sluice-console");

/** Takes up a session. Calls `begins` once somebody seems to be signed in, before the server confirms it. */
export async function takeUp(begins: () => void): Promise<TakenUp> {
  const given = new URLSearchParams(location.hash.slice(1));
  const [code, link] = [given.get("code"), given.get("link")];
  const wanted = keptWanted.get();
  keptWanted.set(null);
  // After a sign-in, an issuer sends the browser to the first page, even if another page was wanted.
  const address = (code !== null && wanted) || location.pathname + location.search;
  if (code !== null || link !== null) history.replaceState(null, "", location.origin + address);
  try {
    if (code !== null) return await exchanged({ path: "/session/secret", body: { code } }, begins);
    if (link !== null) return await exchanged({ path: "/session/link", body: { code: link } }, begins);
    const secret = keptSecret.get();
    if (secret === null) return await ofAnotherTab(begins);
    begins();
    return await takenUp(secret);
  } catch (failure) {
    return nobody(wordsOf(failure));
  }
}

const nobody = (problem: string | null): TakenUp => ({ secret: null, session: null, organization: null, problem });

const wordsOf = (failure: unknown) => (failure instanceof Refusal ? failure.message : String(failure));

async function exchanged(sent: Omit<Sent, "method">, begins: () => void): Promise<TakenUp> {
  begins();
  const answer = await request({ ...sent, method: "post" }, { secret: null, organization: null });
  const { secret, session } = (await answer.json()) as NewSession;
  // This session is for the organization that the server chose. If the tab has kept another organization, the session
  // is requested again for that one.
  return keptOrganization.get() === null ? { secret, session, organization: null, problem: null } : takenUp(secret);
}

/** The answer to a sign-in. */
export interface NewSession {
  secret: string;
  session: Session;
}

/** Takes up the session of a secret. Throws if the session has ended; if the server cannot tell, keeps the secret. */
async function takenUp(secret: string): Promise<TakenUp> {
  const organization = keptOrganization.get();
  try {
    return await sessionOf(secret, organization);
  } catch (failure) {
    if (failure instanceof Refusal && [401, 403].includes(failure.status)) throw failure;
    return { secret, session: null, organization, problem: wordsOf(failure) };
  }
}

async function sessionOf(secret: string, organization: string | null): Promise<TakenUp> {
  try {
    const answer = await request({ method: "get", path: "/session" }, { secret, organization });
    return { secret, session: (await answer.json()) as Session, organization, problem: null };
  } catch (failure) {
    // The membership in that organization has ended meanwhile.
    if (organization === null || !(failure instanceof Refusal && failure.code === "missing_role")) throw failure;
    return sessionOf(secret, null);
  }
}

/** Takes up another tab's session. A tab in the background may send an ended one; then the remaining tabs are asked. */
async function ofAnotherTab(begins: () => void): Promise<TakenUp> {
  const ended = new Set<string>();
  for (;;) {
    const secret = await secretOfAnotherTab(ended);
    if (secret === null) return nobody(null);
    if (ended.size === 0) begins();
    try {
      return await takenUp(secret);
    } catch (failure) {
      if (!(failure instanceof Refusal && failure.status === 401)) throw failure;
      ended.add(secret);
    }
  }
}

/** Asks the other tabs for a session's secret that is not in `ended`; null if no tab has one. */
function secretOfAnotherTab(ended: ReadonlySet<string>): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const channel = secretChannel();
  channel.addEventListener("message", ({ data }: MessageEvent) => {
    if (typeof data?.secret === "string" && !ended.has(data.secret)) resolve(data.secret);
  });
  channel.postMessage(question);
  setTimeout(() => resolve(null), answer_ms);
  return promise.finally(() => channel.close());
}
