// Commands that take a person take an e-mail address, if an issuer has verified it and it names one person.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { idOf } from "../../../src/core/store/ids.ts";
import { people } from "../../../src/stores/postgres/people.ts";
import { newMember } from "../../harness/members.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { type Shell, shellOn } from "./shell.ts";

setDefaultTimeout(60_000);

let cli: Shell;
let ann: string;
let owned: Awaited<ReturnType<typeof openDatabase>>;

beforeAll(async () => {
  owned = await openDatabase();
  cli = shellOn(owned.db);
  for (const words of ["org create acme --plan unlimited", "team create --org acme --name research"])
    expect(await cli.typed(words)).toMatchObject({ code: 0 });
  ann = await newMember(owned.db, "ann", { organization: "acme", team: "research" });
  await cameIn({ subject: "eve", email: "eve@example.com", isEmailVerified: false });
  await cameIn({ subject: "bo-1", email: "bo@example.com", isEmailVerified: true });
  await cameIn({ subject: "bo-2", email: "BO@example.com", isEmailVerified: true });
});
afterAll(() => owned.drop());

async function cameIn(who: { subject: string; email: string; isEmailVerified: boolean }): Promise<void> {
  const id = idOf(Bun.randomUUIDv7(), "per_");
  const known = { id, issuer: "https://login.example", kind: "person", name: who.subject, groups: [], memberships: [] };
  await people(owned.db).confirm({ ...known, ...who, kind: "person" });
}

test("each of them finds the person by the address, in any case", async () => {
  const address = "Ann@Example.com";
  for (const words of [`person show ${address}`, `person suspend ${address}`, `person resume ${address}`])
    expect([words, await cli.json(`${words} --json`)]).toMatchObject([words, { id: ann }]);
  const given = await cli.json(`membership give ${address} --org acme --role organization-admin --json`);
  expect(given).toMatchObject({ id: ann, memberships: [{ organization: "acme", role: "organization-admin" }] });
  expect(await cli.json(`membership take ${address} --org acme --json`)).toMatchObject({ id: ann });
  const key = await cli.json(`key create --org acme --name laptop --person ${address} --json`);
  expect(key).toMatchObject({ person_id: ann, team: { name: "research" } });
  expect(await cli.json(`limit set ${address} month=5 --json`)).toMatchObject({ subject: "person" });
  expect((await cli.typed(`request list --person ${address}`)).code).toBe(0);
  expect((await cli.typed("key list")).out).toMatch(/ID +ORG +NAME +STATE +OWNER/);
  expect(await cli.json(`person forget ${address} --json`)).toMatchObject({ id: ann, state: "forgotten" });
});

test("an address of several people, one that nobody verified, and one of nobody are refused with what to do", async () => {
  for (const [words, says] of [
    [
      "person show bo@example.com",
      /2 people have the address 'bo@example\.com': per_\w+ \(bo-1, https.*per_\w+ \(bo-2,.*by the ID/,
    ],
    ["person suspend eve@example.com", /No issuer has verified the address 'eve@example\.com' of per_\w+ \(eve/],
    ["key create --org acme --name x --person nobody@example.com", /nobody with the address 'nobody@example\.com'/],
    ["limit show nobody@example.com", /nobody with the address/],
  ] as const) {
    const { code, err } = await cli.typed(words);
    expect([words, code]).toEqual([words, 1]);
    expect(err).toMatch(says);
  }
});
