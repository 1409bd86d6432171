/** Who is signed in, and how one signs in and out. */
import { batch, computed, signal } from "@preact/signals";
import { go, path } from "./address.ts";
import { actsIn, json, send, sessionEnded } from "./http.ts";
import { keptOrganization } from "./kept.ts";
import { keepSecret } from "./secret.ts";
import { type Membership, type NewSession, type Session, type TakenUp, takeUp } from "./taking-up.ts";

declare global {
  /**
   * The session, which the inline script of the page begins to fetch before the console is loaded; absent if a proxy
   * adds a Content-Security-Policy that forbids inline scripts.
   */
  var takingUp: Promise<TakenUp> | undefined;
}

export interface WaysIn {
  issuers: { name: string; href: string }[];
  operator: boolean;
  embedded?: boolean;
}

export const session = signal<Session | null>(null);
/** Whether the page knows by now who is signed in, or that nobody is. */
export const isKnown = signal(false);
/** Why nobody is signed in. */
export const problem = signal<string | null>(null);

const allowed = computed(() => new Set(session.value?.verbs));
/** Whether the signed-in person may call the verb: what they may not do is not shown. */
export const may = (verb: string) => allowed.value.has(verb);

/**
 * The current membership of a signed-in member or organization's administrator; null for operators of the whole
 * service.
 */
export const membership = computed<Membership | null>(() => {
  const { role, memberships = [] } = session.value ?? {};
  if (role === "admin" || role === "viewer") return null;
  return memberships.find(({ organization }) => organization === actsIn.value) ?? memberships[0] ?? null;
});

/** Whether the signed-in person is a plain member, who acts only for themselves. */
export const isMember = computed(() => membership.value?.role === "member");

sessionEnded.subscribe((why) => {
  if (why === null) return;
  session.value = null;
  problem.value = why;
});

/**
 * Starts the session. `loads` is called once somebody seems to be signed in, and loads the further files that a page
 * needs.
 */
export async function begin(loads: () => void): Promise<void> {
  const taken = await (globalThis.takingUp ?? takeUp(loads));
  globalThis.takingUp = undefined;
  actIn(taken.organization);
  keepSecret(taken.secret);
  session.value = taken.session;
  problem.value = taken.problem;
  isKnown.value = true;
}

export async function signInWithToken(token: string): Promise<void> {
  const body = { token };
  const begun = await json<NewSession>({ method: "post", path: "/session/operator", body });
  keepSecret(begun.secret);
  sessionEnded.value = null;
  problem.value = null;
  session.value = begun.session;
}

export const waysIn = () => json<WaysIn>({ method: "get", path: "/session/ways" });

export async function signOut(): Promise<void> {
  const leave = session.value?.sign_out_url;
  await send({ method: "delete", path: "/session" }).catch(() => {});
  keepSecret(null);
  session.value = null;
  problem.value = null;
  if (leave) location.assign(leave);
}

let choice = new AbortController();

/**
 * Switches to the membership in another organization. The page begins anew (frame.tsx), without its filters and its
 * list cursor, which belong to the previous organization. Only the last choice counts: an earlier switch whose answer
 * is still on its way is aborted.
 */
export async function changeOrganization(organization: string): Promise<void> {
  choice.abort();
  choice = new AbortController();
  const { signal } = choice;
  try {
    const next = await json<Session>({ method: "get", path: "/session", signal }, organization);
    batch(() => {
      actIn(organization);
      session.value = next;
      go(path.value);
    });
  } catch (failure) {
    if (!signal.aborted) throw failure;
  }
}

function actIn(organization: string | null): void {
  actsIn.value = organization;
  keptOrganization.set(organization);
}
