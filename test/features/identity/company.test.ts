// A day of a company of 60 people (200 in the deep tests), by the groups of its issuer: joiners, movers, leavers, and an hour without the issuer.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { JWTPayload } from "jose";
import { hashKey } from "../../../src/core/auth/credential.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { approveDevice, requestDevice } from "../../../src/features/identity/devices.ts";
import type { IdentityParts } from "../../../src/features/identity/identity.ts";
import { IssuerAway } from "../../../src/features/identity/issuer-clients.ts";
import { currentSession } from "../../../src/features/identity/sessions.ts";
import { beginSignIn, finishSignIn } from "../../../src/features/identity/sign-in.ts";
import type { SessionKind } from "../../../src/features/identity/store/browser-sessions.ts";
import { byDeviceCode, byRefreshToken, TokenRefused } from "../../../src/features/identity/tokens.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { times } from "../../harness/depth.ts";
import { identityParts, serviceUrl, settingsOf } from "../../harness/identity-parts.ts";
import { startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";

setDefaultTimeout(times(120_000, 600_000));
const redirectUri = `${serviceUrl}/oauth/callback`;

let db: Database;
let drop: () => Promise<void>;
let issuer: TestIssuer;
let parts: IdentityParts;
/** The groups of each person who is in the company. */
const staff = new Map<string, string[]>();
const organizations: Record<string, string> = {};

beforeAll(async () => {
  ({ db, drop } = await openDatabase());
  issuer = await startIssuer();
  for (const slug of ["research", "product"]) {
    const id = idOf(Bun.randomUUIDv7(), "org_");
    organizations[slug] = id;
    await administration(db).createOrganization({ id, slug, name: slug, plan: null, actor: "cli:ann" });
  }
  const rules = ["research", "product"].map((organization) => ({
    ...{ claim: "groups", has: organization, organization, role: "member" as const },
  }));
  const settings = settingsOf([issuer], { rules: [...rules, { claim: "groups", has: "ops", role: "admin" as const }] });
  parts = identityParts(db, () => settings);
  issuer.answer("/token", answer);
});
afterAll(async () => {
  await issuer[Symbol.asyncDispose]();
  await drop();
});

/** The issuer's answer for tokens: a code names the person and the nonce, a refresh token the person. */
async function answer(request: Request): Promise<Response> {
  const form = new URLSearchParams(await request.text());
  const [sub = "", nonce] = (form.get("code") ?? form.get("refresh_token") ?? "").split(":");
  const groups = staff.get(sub);
  if (!groups) return Response.json({ error: "invalid_grant" }, { status: 400 });
  const id_token = await issuer.sign({ sub, aud: "sluice", groups, name: sub, nonce } as JWTPayload);
  return Response.json({ access_token: "a", token_type: "Bearer", id_token, refresh_token: sub });
}

async function signIn(sub: string, kind: SessionKind): Promise<string> {
  const begun = await beginSignIn(parts, { kind, issuer: null, redirectUri, returnTo: "/" });
  const { state, nonce } = Object.fromEntries(begun.url.searchParams) as { state: string; nonce: string };
  const url = new URL(`${redirectUri}?${new URLSearchParams({ code: `${sub}:${nonce}`, state })}`);
  return (await finishSignIn(parts, { kind, answer: url, cookie: begun.cookie })).secret;
}

async function device(sub: string) {
  const current = (await currentSession(parts, "device", await signIn(sub, "device")))!;
  const asked = await requestDevice(parts, { agent: "test", address: sub });
  if (asked === "full") throw new Error("full");
  const organizationId = current.known.memberships.find((one) => one.organizationId)!.organizationId!;
  await approveDevice(parts, current, { code: asked.userCode, organizationId });
  return byDeviceCode(parts, asked.deviceCode);
}

const hourLater = () =>
  db.query(
    "update browser_session set confirmed_at = confirmed_at - interval '1 hour', asking_until = null where kind = 'console'",
  );
const works = async (token: string) => (await directory(db).credential(hashKey(token)))!.key.revokedAt === null;

test("people join, move and leave by their groups alone, and nobody else notices", async () => {
  const count = times(60, 200);
  const half = count / 2;
  const names = Array.from({ length: count }, (_, index) => `person-${index}`);
  for (const [index, name] of names.entries())
    staff.set(name, index < 10 ? ["ops", "product"] : [index < half ? "research" : "product"]);
  const sessions = new Map<string, string>();
  for (const name of names) sessions.set(name, await signIn(name, "console"));
  const devices = new Map<string, { accessToken: string; refreshToken: string | null }>();
  for (const name of names.slice(half - 10, half + 10)) devices.set(name, await device(name));
  const roles = await db.query<{ role: string; count: number }>(
    "select role, count(*)::integer as count from membership where ended_at is null group by role order by role",
  );
  expect(roles).toEqual([
    { role: "admin", count: 10 },
    { role: "member", count },
  ]);

  // Joiners come in by their first sign-in; somebody of no group does not.
  staff.set("joiner", ["research"]);
  sessions.set("joiner", await signIn("joiner", "console"));
  staff.set("visitor", []);
  await expect(signIn("visitor", "console")).rejects.toThrow("membership");

  // Five leave, five move, and an administrator stops being one.
  const leavers = names.slice(half - 10, half - 5);
  const movers = names.slice(half - 5, half);
  for (const name of leavers) staff.delete(name);
  for (const name of movers) staff.set(name, ["product"]);
  staff.set("person-0", ["product"]);

  // An hour without the issuer ends nothing.
  await hourLater();
  issuer.answer("/token", () => new Response("down", { status: 503 }));
  const there = async () => {
    const all = [...sessions].map(
      async ([name, secret]) => [name, await currentSession(parts, "console", secret)] as const,
    );
    return new Map(await Promise.all(all));
  };
  expect([...(await there()).values()].filter(Boolean)).toHaveLength(count + 1);
  const first = devices.get(leavers[0]!)!;
  await expect(byRefreshToken(parts, first.refreshToken!)).rejects.toBeInstanceOf(IssuerAway);
  issuer.answer("/token", answer);

  // An hour later, each person has what the groups say.
  await hourLater();
  const now = await there();
  for (const [name, current] of now) {
    const groups = staff.get(name);
    expect([name, current !== null]).toEqual([name, groups !== undefined]);
    const places = current?.known.memberships.map(({ organization }) => organization ?? "ops") ?? [];
    expect([name, places.sort()]).toEqual([name, [...(groups ?? [])].sort()]);
  }
  for (const [name, { accessToken, refreshToken }] of devices) {
    const outcome = await byRefreshToken(parts, refreshToken!).catch((cause: unknown) => cause);
    const stays = !leavers.includes(name) && !movers.includes(name);
    expect([name, outcome instanceof TokenRefused]).toEqual([name, !stays]);
    // The device of a person who moved was signed in for the other organization, so it has to be signed in anew.
    expect([name, await works(accessToken)]).toEqual([name, stays]);
  }
  const anew = await device(movers[0]!);
  const found = (await directory(db).credential(hashKey(anew.accessToken)))!;
  expect(found.organization.id).toBe(organizations.product!);
});
