// Tests that every real provider must pass: sign-in, change of groups, sign-in of a device, and sign-out.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { until } from "../../harness/until.ts";
import type { RealIssuer } from "./issuer.ts";
import { type Place, signIn, signInDevice } from "./place.ts";

interface ShownPerson {
  id: string;
  name: string | null;
  email: string | null;
  memberships: { organization: string | null; role: string }[];
}

type AnyPlace = Place<RealIssuer>;

export async function personOf({ sluice }: AnyPlace, name: string): Promise<ShownPerson> {
  const people = await sluice.json<ShownPerson[]>("person", "list");
  const found = people.find(({ email }) => email === `${name}@example.com`);
  if (!found) throw new Error(`nobody is ${name} in ${JSON.stringify(people)}`);
  return sluice.json<ShownPerson>("person", "show", found.id);
}

export const placesOf = ({ memberships }: ShownPerson) =>
  memberships.map(({ organization, role }) => `${organization ?? "service"}: ${role}`);

interface Tokens {
  access_token: string;
  refresh_token: string;
}

/** The tokens that `sluice login` has stored in its file. */
export const keptBy = (signInFile: string) => JSON.parse(readFileSync(signInFile, "utf8")) as Tokens;

/** Refreshes the tokens, as a client does after an hour, when its access token has expired. */
export async function refresh({ serviceUrl }: AnyPlace, { refresh_token }: Tokens) {
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token });
  const answer = await fetch(`${serviceUrl}/oauth/token`, { method: "POST", body });
  return { status: answer.status, ...((await answer.json()) as Tokens & { error?: string }) };
}

export const modelsBy = async ({ serviceUrl }: AnyPlace, token: string) =>
  (await fetch(`${serviceUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status;

/** Declares the tests for a provider. Each test uses a different person of the staff. */
export function everyWay(placeNow: () => AnyPlace): void {
  test("sluice doctor can use it", async () => {
    const { sluice, issuer } = placeNow();
    const { stdout } = await sluice.cli("doctor");
    const line = stdout.split("\n").find((one) => one.includes(`issuer ${issuer.issuer}`));
    console.log(line?.trim());
    expect(line).toMatch(/^(ok|warn)/);
  });

  test("somebody of a group signs in to the console in a browser, moves to another group, and signs out", async () => {
    const place = placeNow();
    const tab = await place.newTab();
    await signIn(place, tab, "ann");
    await tab.page.waitForSelector(".rail");
    tab.found.length = 0;
    const ann = await personOf(place, "ann");
    expect(ann.name).toContain("ann");
    expect(placesOf(ann)).toEqual(["acme: member"]);
    await tab.visit("/usage");
    await tab.visit("/connect");
    expect(await tab.page.locator(".who-name").textContent()).toContain("ann");
    expect(tab.found).toEqual([]);

    await place.issuer.setGroups("ann", ["product"]);
    await place.hourLater();
    await tab.visit("/usage");
    expect(placesOf(await personOf(place, "ann"))).toEqual(["shop: member"]);

    await tab.page.getByRole("button", { name: "Sign out" }).click();
    await place.issuer.signOut(tab.page);
    await tab.page.goto(`${place.consoleUrl}/`);
    await tab.page.getByRole("link", { name: /^Sign in with / }).waitFor();
    await tab.context.close();
  });

  test("an administrator comes in by a group", async () => {
    const place = placeNow();
    const tab = await place.newTab();
    await signIn(place, tab, "pat");
    await tab.page.waitForSelector(".rail");
    await tab.visit("/organizations");
    expect(await tab.page.locator("main").textContent()).toContain("shop");
    expect(placesOf(await personOf(place, "pat"))).toEqual(["service: admin"]);
    await tab.context.close();
  });

  test("somebody of no group is not let in, and told which ID to name", async () => {
    const place = placeNow();
    const tab = await place.newTab();
    await signIn(place, tab, "eve");
    expect(await tab.page.locator("body").textContent()).toMatch(/Ask your administrator .* per_[0-9a-f]{32}/);
    await tab.context.close();
  });

  test("a device signs in, calls a model as its person, and each refresh asks the provider", async () => {
    const place = placeNow();
    using device = await signInDevice(place, "mia");
    expect(device.login).toMatchObject({ code: 0 });
    expect(placesOf(await personOf(place, "mia"))).toEqual(["acme: member"]);
    expect((await device.home.run("try", "--message", "hello")).code).toBe(0);
    const asked = async () => (await place.sluice.json<{ key_id: string }[]>("request", "list")).length;
    await until(async () => (await asked()) > 0, 10_000, "the request in the list");
    const first = await refresh(place, keptBy(device.home.signInFile(place.serviceUrl)));
    expect(first.status).toBe(200);
    expect(await modelsBy(place, first.access_token)).toBe(200);
    // After a change of groups, a person may no longer use the organization for which the device was approved.
    await place.issuer.setGroups("mia", ["product"]);
    expect(await refresh(place, first)).toMatchObject({ status: 400, error: "invalid_grant" });
    expect(await modelsBy(place, first.access_token)).toBe(401);
    expect(placesOf(await personOf(place, "mia"))).toEqual(["shop: member"]);
  });
}
