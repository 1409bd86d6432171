/**
 * What counts at once: a plan that is lowered, a key that is revoked, an organization that is suspended or loses its plan,
 * while requests run; on two nodes over Postgres, and embedded. Each leaves one record, and no hold.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestReceipt } from "../../src/http/receipt-shape.ts";
import { says as saying } from "../harness/engine.ts";
import { freshDatabase } from "../harness/services.ts";
import { type Simulator, startSimulator } from "../harness/simulator.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(120_000);

const model = "acme/writer-1";
/** Long enough that nothing ends by itself while a test looks. */
const directives = "tokens=16000 tps=200";
const bodies: Record<string, object> = {
  "/v1/chat/completions": { messages: saying(directives) },
  "/v1/messages": { messages: saying(directives), max_tokens: 16_000 },
  "/v1/responses": { input: saying(directives) },
};

const configTo = (url: string, gold: string) => `upstreams:
  main: { url: "${url}" }
models:
  - id: ${model}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    prices: { input: 1, output: 10 }
    routes: [{ upstream: main, model: m }]
plans:
  gold: ${gold}
  limitless: {}
metering: { checkpoint_s: 0.5 }
`;

interface Fleet {
  nodes: Sluice[];
  /** Of their common database; null: it is embedded. */
  database: string | null;
  /** Of each node: its own configuration file, with this limit of a session on the plan gold. */
  rewrite(node: number, gold: string): void;
  file(node: number): string;
  /** A new organization. */
  member(plan: string): Promise<{ organization: string; keyId: string; key: string; otherKey: string }>;
  stop(): Promise<void>;
}

async function startFleet(store: "pglite" | "postgres", engine: Simulator): Promise<Fleet> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-at-once-"));
  const database = store === "postgres" ? await freshDatabase() : null;
  const file = (node: number) => join(folder, `sluice-${node}.yaml`);
  const rewrite = (node: number, gold: string) => writeFileSync(file(node), configTo(engine.url, gold));
  const nodes: Sluice[] = [];
  for (let index = 0; index < (database ? 2 : 1); index++) {
    rewrite(index, "{}");
    const env = { SLUICE_CONFIG: file(index), ...(database ? { DATABASE_URL: database.url } : {}) };
    nodes.push(await startSluice({ store: "pglite", env, dataDir: join(folder, `data-${index}`) }));
  }
  let members = 0;
  const { json } = nodes[0]!;
  return {
    nodes,
    database: database?.url ?? null,
    rewrite,
    file,
    async member(plan) {
      const slug = `member-${members++}`;
      const { id: organization } = await json<{ id: string }>("org", "create", slug, "--plan", plan);
      const made = () => json<{ id: string; key: string }>("key", "create", "--org", slug, "--name", "test");
      const [{ id: keyId, key }, { key: otherKey }] = [await made(), await made()];
      return { organization, keyId, key, otherKey };
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
      await database?.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Running {
  path: string;
  stream: boolean;
  node: Sluice;
  /** Its first bytes, for a stream. */
  begun: Promise<void>;
  ended: Promise<{ id: string; status: number; text: string; at_ms: number }>;
}

function run(node: Sluice, key: string, path: string, stream: boolean): Running {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const ended = (async () => {
    const response = await fetch(node.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, ...bodies[path], stream }),
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > 2_000) begin();
    }
    begin();
    const id = response.headers.get("x-service-request-id")!;
    return { id, status: response.status, text, at_ms: performance.now() };
  })();
  return { path, stream, node, begun, ended };
}

const get = async <T>(node: Sluice, key: string, path: string) =>
  (await (await fetch(node.url + path, { headers: { authorization: `Bearer ${key}` } })).json()) as T;

async function receiptOf(node: Sluice, key: string, id: string): Promise<RequestReceipt> {
  let receipt: RequestReceipt | null = null;
  await until(
    async () => {
      receipt = await get<RequestReceipt>(node, key, `/v1/service/requests/${id}`);
      return receipt.object === "service.request" && receipt.outcome !== "running";
    },
    10_000,
    `the record of ${id}`,
  );
  return receipt!;
}

const dataOf = (text: string) => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);

let engine: Simulator;
beforeAll(async () => {
  engine = await startSimulator({});
});
afterAll(() => engine.stop());

describe.each(["pglite", "postgres"] as const)("on %s", (store) => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet(store, engine);
  });
  afterAll(() => fleet.stop());

  const holdsGone = () =>
    until(
      async () => {
        const texts = await Promise.all(fleet.nodes.map(async ({ url }) => (await fetch(`${url}/metrics`)).text()));
        return texts.every((text) => /^\S*usage_holds 0$/m.test(text));
      },
      10_000,
      "no hold to be left",
    );

  test("a plan that is lowered ends what runs at its new limit, on nodes with an older file too", async () => {
    const { key } = await fleet.member("gold");
    const running = fleet.nodes.flatMap((node) => [1, 2].map(() => run(node, key, "/v1/chat/completions", true)));
    await Promise.all(running.map(({ begun }) => begun));
    const limit = 20_000;
    fleet.rewrite(0, `{ session: ${limit} }`);
    fleet.nodes[0]!.signal("SIGHUP");
    let charged = 0;
    for (const { ended, node } of running) {
      const { id, text } = await ended;
      const data = dataOf(text);
      expect(data.at(-1)).toBe("[DONE]");
      expect(text).toContain('"finish_reason":"length"');
      const receipt = await receiptOf(node, key, id);
      expect(receipt).toMatchObject({ outcome: "completed", stopped_by: "usage_window", units: { uncharged: 0 } });
      charged += receipt.units.charged;
    }
    expect(charged).toBeLessThanOrEqual(limit);
    expect(charged).toBeGreaterThan(limit * 0.9);
    await holdsGone();

    for (const node of fleet.nodes) {
      const refused = await run(node, key, "/v1/chat/completions", true).ended;
      expect(refused.status).toBe(429);
      expect(refused.text).toContain("usage_limit_reached");
    }
  });

  test("a plan made at run time counts on all nodes within a second, and lowered it ends what runs", async () => {
    const [first] = fleet.nodes;
    await first!.json("plan", "create", "made");
    const { key } = await fleet.member("made");
    const running = fleet.nodes.map((node) => run(node, key, "/v1/chat/completions", true));
    await Promise.all(running.map(({ begun }) => begun));
    await first!.json("plan", "update", "made", "--limit", "session=20000");
    let charged = 0;
    for (const { ended, node } of running) {
      const { id, text } = await ended;
      expect(text).toContain('"finish_reason":"length"');
      charged += (await receiptOf(node, key, id)).units.charged;
    }
    expect(charged).toBeLessThanOrEqual(20_000);
    expect(charged).toBeGreaterThan(18_000);
    await holdsGone();

    const refused = await first!.cli("plan", "remove", "made");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("is used by 1 organization")]);
    // A file that names it is refused, and all that was in force stays.
    const file = fleet.file(0);
    writeFileSync(file, `${configTo(engine.url, "{}")}`.replace("  limitless: {}", "  limitless: {}\n  made: {}"));
    first!.signal("SIGHUP");
    await until(() => first!.stderr().includes("was made at run time"), 10_000, "the refusal");
    expect((await first!.json<object[]>("plan", "history", "made")).length).toBe(2);
    const shown = await first!.json<{ source: string }>("plan", "show", "made");
    expect(shown).toMatchObject({ source: "management", session: 20_000, version: 2 });
    fleet.rewrite(0, "{ session: 20000 }");
  });

  test("a node that starts with a file that was changed before does not bring its plans back", async () => {
    const [first] = fleet.nodes;
    fleet.rewrite(0, "{ session: 40000 }");
    first!.signal("SIGHUP");
    await until(() => first!.stderr().split("configuration_reloaded").length > 2, 10_000, "the reload");
    if (fleet.database === null) return;
    const { key } = await fleet.member("gold");
    const folder = mkdtempSync(join(tmpdir(), "sluice-older-"));
    const file = join(folder, "sluice.yaml");
    writeFileSync(file, configTo(engine.url, "{ session: 1 }"));
    utimesSync(file, Date.now() / 1000 - 3_600, Date.now() / 1000 - 3_600);
    const env = { SLUICE_CONFIG: file, DATABASE_URL: fleet.database };
    const older = await startSluice({ store: "pglite", dataDir: folder, env });
    await until(() => older.stderr().includes("plans_older"), 10_000, "the word that its plans are not in force");
    const running = run(older, key, "/v1/chat/completions", true);
    await running.begun;
    fleet.rewrite(1, "{ session: 10 }");
    fleet.nodes[1]!.signal("SIGHUP");
    expect((await running.ended).text).toContain('"finish_reason":"length"');
    await older.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const acts = {
    "a key is revoked": {
      act: ({ keyId }: Member) => ["key", "revoke", keyId],
      back: () => null,
      ...{ code: "revoked_api_key", status: 401, says: /revoked/ },
    },
    "an organization is suspended": {
      act: ({ organization }: Member) => ["org", "suspend", organization],
      back: ({ organization }: Member) => ["org", "resume", organization],
      ...{ code: "organization_suspended", status: 403, says: /suspended/ },
    },
    "an organization is closed": {
      act: ({ organization }: Member) => ["org", "close", organization, "--yes"],
      back: () => null,
      ...{ code: "revoked_api_key", status: 401, says: /revoked/ },
    },
  };
  type Member = Awaited<ReturnType<Fleet["member"]>>;

  for (const [name, { act, back, code, status, says }] of Object.entries(acts)) {
    test(`where ${name}, its running requests end with their protocol's error`, async () => {
      const member = await fleet.member("limitless");
      const bystander = await fleet.member("limitless");
      const other = run(fleet.nodes[0]!, bystander.key, "/v1/chat/completions", true);
      const running = fleet.nodes.flatMap((node) =>
        Object.keys(bodies).flatMap((path) => [true, false].map((stream) => run(node, member.key, path, stream))),
      );
      await Promise.all([other, ...running].filter(({ stream }) => stream).map(({ begun }) => begun));
      const asked = engine.counts.requests;
      expect(asked).toBeGreaterThanOrEqual(running.length);
      await fleet.nodes[0]!.json(...act(member));
      const acted_ms = performance.now();
      const ended = await Promise.all(running.map(async (one) => ({ ...one, ...(await one.ended) })));
      for (const one of ended) {
        expect(one.at_ms - acted_ms).toBeLessThan(10_000);
        if (!one.stream) {
          expect(one.status).toBe(status);
          expect(one.text).toContain(code);
          continue;
        }
        expect(one.status).toBe(200);
        const data = dataOf(one.text);
        if (one.path === "/v1/messages") {
          expect(one.text).toContain("event: error\n");
          expect(JSON.parse(data.at(-1)!).error.details.error_code).toBe(code);
          expect(one.text).not.toContain("message_stop");
        } else {
          expect(data.at(-1)).toBe("[DONE]");
          const last = JSON.parse(data.at(-2)!);
          // The codes of a failed response are OpenAI's own; its message says why.
          if (one.path === "/v1/responses")
            expect(last).toMatchObject({
              type: "response.failed",
              response: { error: { message: expect.stringMatching(says) } },
            });
          else expect(last.error.code).toBe(code);
        }
      }
      const undo = back(member);
      if (undo) await fleet.nodes[0]!.json(...undo);
      for (const { id, node, stream } of ended) {
        // No key of a closed organization reads them; an operator does, as long as they are kept.
        const receipt = await (name.endsWith("closed")
          ? node.json<RequestReceipt>("request", "show", id)
          : receiptOf(node, member.otherKey, id));
        expect(receipt).toMatchObject({ outcome: "failed", error_code: code, recovered: false });
        if (stream) expect(receipt.usage.output_tokens).toBeGreaterThan(0);
        // Of what nobody streamed, nothing was delivered.
        expect(receipt.units.charged > 0).toBe(stream);
      }
      // Nobody else noticed, until its own plan is gone.
      await fleet.nodes[0]!.json("org", "plan", bystander.organization, "--none");
      expect((await other.ended).text).toContain("no_active_plan");
      await holdsGone();
    });
  }
});
