// The search over all names: what it finds, in which order, and that it shows nobody what their lists do not show.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { listKeys, listOrganizations, listTeams } from "./lists.ts";
import { recordRequest, worldForTests } from "./own-world.ts";
import { actingAs, callersIn } from "./world.ts";

setDefaultTimeout(120_000);
let requestId: string;
const world = worldForTests(async (world) => {
  const { manage, people } = world;
  for (const name of ["reports", "all reports", "Reports of bob"])
    await manage.createKey({ organization: "acme", name });
  await manage.createKey({ organization: "acme", name: "bob's reports", person: people.bob });
  await manage.createKey({ organization: "globex", name: "other reports" });
  await manage.createTeam({ organization: "globex", name: "reporters" });
  requestId = await recordRequest(world);
});

const namesFound = async (manage: Management, input: Parameters<Management["search"]>[0]) =>
  (await manage.search(input)).data.map(({ name }) => name);

describe("a search", () => {
  test("finds the whole name first, then names that begin with it, then those that contain it, in any case", async () => {
    const found = await namesFound(world.manage, { text: "REPORTS", kind: "key" });
    expect(found).toEqual(["reports", "Reports of bob", "all reports", "bob's reports", "other reports"]);
  });

  test("finds all kinds of things at once, and of each what tells it from others", async () => {
    const { data } = await world.manage.search({ text: "report" });
    expect(data.filter(({ kind }) => kind === "team")).toMatchObject([{ name: "reporters", organization: "globex" }]);
    expect(data.find(({ name }) => name === "bob's reports")).toMatchObject({ organization: "acme", detail: "bob" });
    const [bob] = (await world.manage.search({ text: "bob@exam" })).data;
    expect(bob).toEqual({
      kind: "person",
      id: world.people.bob,
      name: "bob",
      organization: null,
      detail: "bob@example.com",
    });
    expect((await world.manage.search({ text: "writer" })).data).toMatchObject([
      { kind: "model", id: "acme/writer-1" },
    ]);
    expect((await world.manage.search({ text: "glob" })).data[0]).toMatchObject({
      kind: "organization",
      id: world.globex,
      organization: "globex",
    });
  });

  test("finds a thing by its ID and by the beginning of it", async () => {
    const { teams, people, keys, acme, manage } = world;
    for (const id of [acme, teams.research, people.ann, keys.key, requestId])
      for (const text of [id, id.slice(0, -1), id.slice(0, -4)])
        expect([text, (await manage.search({ text })).data.map((one) => one.id)]).toEqual([
          text,
          expect.arrayContaining([id]),
        ]);
    expect((await manage.search({ text: `key_${"f".repeat(32)}` })).data).toEqual([]);
    expect((await manage.search({ text: `req_${"f".repeat(32)}` })).data).toEqual([]);
  });

  test("takes what somebody types as text, not as a pattern", async () => {
    for (const text of ["%", "_", "'", "\\", "report%"]) {
      const { data } = await world.manage.search({ text });
      expect([text, data.every(({ name }) => name.includes(text))]).toEqual([text, true]);
    }
  });

  test("answers as many as are asked for, and no revoked key", async () => {
    const { manage } = world;
    expect(await namesFound(manage, { text: "report", limit: 2 })).toHaveLength(2);
    const { id } = await manage.createKey({ organization: "acme", name: "gone reports" });
    await manage.revokeKey({ id });
    expect(await namesFound(manage, { text: "gone reports" })).toEqual([]);
  });

  test("of every caller finds what the lists of that caller show, and nothing else", async () => {
    const texts = ["a", "e", "report", "res"];
    for (const [who, caller] of Object.entries(callersIn(world))) {
      const manage = actingAs(world.db, caller);
      const isMember = caller.role === "member";
      const people = isMember ? [] : (await manage.pagePeople({})).data;
      const named = [
        ...(isMember ? [] : await listOrganizations(manage)).map(({ id, slug, name }) => ({ id, texts: [slug, name] })),
        ...(isMember ? [] : await listTeams(manage)).map(({ id, name }) => ({ id, texts: [name] })),
        ...people.map(({ id, name, email }) => ({ id, texts: [name ?? "", email ?? ""] })),
        ...(await listKeys(manage))
          .filter(({ state }) => state === "active")
          .map(({ id, name }) => ({ id, texts: [name] })),
      ];
      for (const text of texts) {
        const { data } = await manage.search({ text, limit: 50 });
        const found = data.filter(({ kind }) => kind !== "model").map(({ id }) => id);
        const listed = named.filter((one) => one.texts.some((name) => name.toLowerCase().includes(text)));
        expect([who, text, found.toSorted()]).toEqual([who, text, listed.map(({ id }) => id).toSorted()]);
        const models = (await manage.listModels()).data.filter(({ id }) => id.includes(text)).map(({ id }) => id);
        expect([who, data.filter(({ kind }) => kind === "model").map(({ id }) => id)]).toEqual([who, models]);
      }
      const requests = (await manage.pageRequests({})).data.map(({ id }) => id);
      expect([who, (await manage.search({ text: requestId })).data.map(({ id }) => id)]).toEqual([who, requests]);
    }
  });
});
