/**
 * People on the operator's port and on inference operations: who may see and change them, and what a suspension ends.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { scopes } from "../../../src/core/store/directory.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { operatorPort } from "./operator-port.ts";

setDefaultTimeout(60_000);
const owned = await openDatabase();
const port = await operatorPort(owned);
afterAll(async () => {
  await port.stop();
  await owned.drop();
});

async function person(name: string, organization: string | null) {
  const membership = { organization, team: null, role: "member" as const, scopes, models: null };
  const made = await people(owned.db).confirm({
    ...{ id: idOf(Bun.randomUUIDv7(), "per_"), issuer: "https://login.example", subject: name, kind: "person" },
    ...{ email: `${name}@example.com`, isEmailVerified: true, name, groups: ["secret-group"] },
    memberships: organization === null ? [] : [membership],
  });
  return made.id;
}

test("an organization's administrator sees her own people alone, without groups and other memberships", async () => {
  const [ann, bob] = [await person("ann", "acme"), await person("bob", "globex")];
  await port.manage.giveMembership({ person: ann, organization: "globex", role: "member" });
  const token = port.tokens["organization-admin"];
  const { body } = await port.ask("/people", { token });
  expect(body.data).toMatchObject([{ id: ann, groups: [], memberships: [{ organization: "acme" }] }]);
  expect((await port.ask(`/people/${bob}`, { token })).code).toBe("resource_not_found");
  expect((await port.ask(`/people/${ann}`, { token })).status).toBe(200);
  const all = await port.ask("/people?search=BOB@");
  expect(all.body.data).toMatchObject([{ id: bob, groups: ["secret-group"] }]);
});

test("a membership that contradicts itself is refused in words", async () => {
  const ann = await person("ann", "acme");
  const give = async (body: object) =>
    (await port.ask(`/people/${ann}/membership`, { method: "PUT", body })).body.error?.message;
  expect(await give({ role: "admin", organization: "acme" })).toContain("for the service");
  expect(await give({ role: "member" })).toContain("Name it");
  expect(await give({ role: "viewer", team: "research" })).toContain("no teams");
  expect(await give({ role: "member", organization: "acme", team: "gone" })).toContain("has no team 'gone'");
  expect(await give({ role: "member", organization: "acme", models: ["gone"] })).toContain("no model 'gone'");
  const taken = await port.post(`/people/${ann}/membership/take`, {});
  expect(taken.body.error?.message).toContain("no membership by hand");
});

test("somebody who is unknown is answered with what to do", async () => {
  const unknown = await port.ask(`/people/per_${"0".repeat(32)}`);
  expect(unknown.code).toBe("resource_not_found");
  expect(unknown.body.error?.message).toContain("sluice person list");
});
