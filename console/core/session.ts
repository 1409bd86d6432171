/** Who is signed in, and how one signs in and out. */
import { computed, signal } from "@preact/signals";
import { goInstead } from "./address.ts";
import { actsIn, json, Refusal, send, sessionEnded } from "./http.ts";
import { keepSecret, secret, secretOfAnotherTab } from "./secret.ts";
import { takeWanted } from "./wanted.ts";

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
  /** The issuer's page of signing out. */
  sign_out_url?: string;
  /** The verbs that one may call. */
  verbs: string[];
}

export interface WaysIn {
  issuers: { name: string; href: string }[];
  operator: boolean;
  embedded?: boolean;
}

export const session = signal<Session | null>(null);
/** Whether it is known who is signed in, or that nobody is. */
export const isKnown = signal(false);
/** Why nobody is. */
export const problem = signal<string | null>(null);

const allowed = computed(() => new Set(session.value?.verbs));
/** Reports whether the interface would let one call the verb: what one may not do is not shown. */
export const may = (verb: string) => allowed.value.has(verb);

/** One's own membership, for a member and for an organization's administrator. */
export const membership = computed<Membership | null>(() => {
  const { role, memberships = [] } = session.value ?? {};
  if (role === "admin" || role === "viewer") return null;
  return memberships.find(({ organization }) => organization === actsIn.value) ?? memberships[0] ?? null;
});

/** Whether one acts for oneself alone. */
export const isMember = computed(() => membership.value?.role === "member");

sessionEnded.subscribe((why) => {
  if (why === null) return;
  session.value = null;
  problem.value = why;
});

/** Takes up the session of the address, of this tab, or of another. */
export async function begin(): Promise<void> {
  const given = new URLSearchParams(location.hash.slice(1));
  const [code, link] = [given.get("code"), given.get("link")];
  if (code !== null || link !== null) history.replaceState(null, "", location.pathname + location.search);
  try {
    if (code !== null) await exchange("/session/secret", { code });
    else if (link !== null) await exchange("/session/link", { code: link });
    else if (secret() === null) keepSecret(await secretOfAnotherTab());
    if (secret() !== null) await refresh();
    const wanted = takeWanted();
    if (code !== null && wanted !== null) goInstead(wanted);
  } catch (failure) {
    refused(failure);
  }
  isKnown.value = true;
}

export async function signInWithToken(token: string): Promise<void> {
  await exchange("/session/operator", { token });
  await refresh();
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

export async function actIn(organization: string): Promise<void> {
  actsIn.value = organization;
  sessionStorage.setItem("sluice-organization", organization);
  await refresh();
}

async function refresh(): Promise<void> {
  session.value = await json<Session>({ method: "get", path: "/session" });
  problem.value = null;
  sessionEnded.value = null;
}

async function exchange(path: string, body: object): Promise<void> {
  keepSecret((await json<{ secret: string }>({ method: "post", path, body })).secret);
}

function refused(failure: unknown): void {
  keepSecret(null);
  problem.value = failure instanceof Refusal ? failure.message : String(failure);
}
