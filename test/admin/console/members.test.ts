// A member uses the console's API over real sockets: she sees only her own data, creates keys for herself, and cannot
// raise a limit.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type VerbName, verbNamed } from "../../../src/admin/management/verbs.ts";
import type { Browser, Call } from "../../harness/browser.ts";
import { signInByIssuer } from "../../harness/console-session.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

interface SignedIn {
  id: string;
  verbs: string[];
  manage(path: string, asked?: Call): ReturnType<Browser["call"]>;
}
type Listed = { data: { id: string }[] };

const tomorrow = new Date(Date.now() + 86_400_000).toISOString();

describe("a member", () => {
  let node: PeopleNode;
  let ann: SignedIn;
  let bob: SignedIn;
  beforeAll(async () => {
    node = await startPeopleNode();
    ann = await signIn("ann", ["research"]);
    bob = await signIn("bob", ["research"]);
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  async function signIn(account: string, groups: string[]): Promise<SignedIn> {
    const { call, manage } = await signInByIssuer(node, account, { groups });
    return { ...((await call("/session")).body as { id: string; verbs: string[] }), manage };
  }

  const keyFor = (who: SignedIn, more: object = {}) =>
    who.manage("/keys", {
      method: "POST",
      body: { organization: node.sluice.organization, name: "mine", expires_at: tomorrow, ...more },
    });
  const ask = async (key: string) => {
    const { data } = (await (await node.sluice.fetch("/v1/models")).json()) as Listed;
    const body = { model: data[0]!.id, messages: [{ role: "user", content: "hello" }], max_tokens: 10 };
    const answer = await node.sluice.post("/v1/chat/completions", body, { key });
    expect(answer.status).toBe(200);
    await answer.text();
    return answer.headers.get("x-service-request-id")!;
  };
  const idsOf = (answer: { body: unknown }) => (answer.body as Listed).data.map(({ id }) => id);

  test("makes a key for herself, calls with it, and sees its requests, receipts and usage alone", async () => {
    const made = await keyFor(ann);
    expect(made.status).toBe(200);
    const { id, key } = made.body as { id: string; key: string };
    const theirs = (await keyFor(bob)).body as { id: string; key: string };
    const own = await ask(key);
    const others = [await ask(theirs.key), await ask(node.sluice.key)];
    expect(idsOf(await ann.manage("/keys"))).toEqual([id]);
    await until(async () => idsOf(await ann.manage("/requests")).length > 0, 10_000, "her request in the list");
    expect(idsOf(await ann.manage("/requests"))).toEqual([own]);
    expect(idsOf(await ann.manage(`/requests?organization=${node.sluice.organization}`))).toEqual([own]);
    const receipt = await ann.manage(`/requests/${own}`);
    expect(receipt.body).toMatchObject({ id: own, key_id: id, route: null, windows: null });
    for (const other of others) expect((await ann.manage(`/requests/${other}`)).status).toBe(404);
    const total = async (who: SignedIn) =>
      ((await who.manage("/usage/report?by=key")).body as { total: { requests: number }; rows: { key_id: string }[] })!;
    await until(async () => (await total(ann)).total.requests === 1, 10_000, "her request in the report");
    expect((await total(ann)).rows.map(({ key_id }) => key_id)).toEqual([id]);
    for (const by of ["organization", "organization,team"]) {
      const { rows } = (await ann.manage(`/usage/report?by=${by}`)).body as { rows: object[] };
      expect(rows.map((row) => "standing" in row && (row as { standing: unknown }).standing !== null)).toEqual([false]);
    }
    expect((await ann.manage(`/people/${ann.id}`)).body).toMatchObject({ id: ann.id });
    const log = await node.sluice.json<{ actor: string; action: string }[]>("audit", "list");
    expect(log.map(({ actor, action }) => [actor, action])).toContainEqual([`person:${ann.id}`, "key.create"]);
  });

  test("tries a model as herself or as a key of hers, and has the receipt; with another's key, or none that is hers, not", async () => {
    const { data } = (await (await node.sluice.fetch("/v1/models")).json()) as Listed;
    const body = { model: data[0]!.id, messages: [{ role: "user", content: "hello" }], max_tokens: 10 };
    const tried = (path: string, more: object = {}) => ann.manage(path, { method: "POST", body: { ...body, ...more } });
    const { id } = (await keyFor(ann)).body as { id: string };
    const theirs = (await keyFor(bob)).body as { id: string };
    for (const path of ["/try", `/try?key=${id}`]) {
      const answer = await tried(path);
      expect(answer).toMatchObject({ status: 200, body: { object: "chat.completion" } });
      const requestId = answer.headers.get("x-service-request-id")!;
      await until(async () => (await ann.manage(`/requests/${requestId}`)).status === 200, 10_000, "the receipt");
      const { body: receipt } = await ann.manage(`/requests/${requestId}`);
      expect(receipt).toMatchObject({ operation: "chat.completions", model: body.model });
      if (path !== "/try") expect(receipt!.key_id).toBe(id);
    }
    expect((await tried(`/try?key=${theirs.id}`)).status).toBe(404);
    expect((await tried("/try?key=key_1")).status).toBe(404);
    expect((await tried("/try?secret=1")).status).toBe(400);
    expect((await tried("/try", { model: "no/such" })).status).toBe(404);
    expect((await tried("/try", { messages: [] })).status).toBe(400);
    const foreign = await ann.manage("/try", { method: "POST", body, origin: "https://evil.example" });
    expect(foreign.status).toBe(400);
    await ann.manage(`/keys/${id}/revoke`, { method: "POST", body: {} });
    expect((await tried(`/try?key=${id}`)).status).toBe(401);
  });

  test("raises nothing by any field of what she may do: each is known here, and those that could are refused", async () => {
    const harmless: Record<string, string[]> = {
      createKey: ["organization", "name", "own_name", "scopes", "models", "expires_at", "labels", "allow_from"],
      rotateKey: ["id", "grace"],
      revokeKey: ["id", "old"],
    };
    const refused = { team: "research", limits: { month: "1" }, owner: "bob", person: bob.id };
    const writable = ann.verbs.flatMap((name) => {
      // `tryModel` is not in the list of verbs; a test above covers its input.
      if (name === "tryModel") return [];
      // A request for a higher limit does not raise it (test/admin/management/limit-requests.test.ts).
      if (name === "requestLimit" || name === "withdrawLimitRequest") return [];
      const { kind, input } = verbNamed(name as VerbName);
      const known = [...(harmless[name] ?? []), ...(name === "createKey" ? Object.keys(refused) : [])];
      const fields = kind === "reading" ? [] : Object.keys(input.properties);
      return fields.filter((field) => !known.includes(field)).map((field) => `${name}: ${field}`);
    });
    expect(writable).toEqual([]);
    for (const [field, value] of [...Object.entries(refused), ["person", ann.id], ["expires_at", null]] as const)
      expect([field, await keyFor(ann, { [field]: value })]).toMatchObject([field, { status: 400 }]);
  });
});
