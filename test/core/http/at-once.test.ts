/**
 * Changes that take effect at once on running requests: a changed limit of any subject, a revoked key, an organization
 * that is suspended or loses its plan; on three nodes over Postgres, and embedded. Each request leaves one record, and
 * no hold.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestReceipt } from "../../../src/features/receipts/receipt-shape.ts";
import { busyness } from "../../harness/busyness.ts";
import { databaseKinds, isDeep } from "../../harness/depth.ts";
import { inferenceBodies, inMoney, says as saying } from "../../harness/engine.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { dollars, nanosOf, typed } from "../../harness/money.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { endedReceipt } from "../../harness/receipts.ts";
import { type Simulator, startSimulator } from "../../harness/simulator.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(240_000);

const model = "acme/writer-1";
const chat = "/v1/chat/completions";
/**
 * The directive for a stream's tokens a second: fewer on a busy machine, where a new limit takes longer to be in force.
 */
const pace = (tokens_per_s: number) => `tps=${Math.round(tokens_per_s / Math.min(busyness(), 1.5))}`;
/** Directives for an answer so long that it does not end by itself while a test watches it. */
const directives = `tokens=16000 ${pace(200)}`;
const bodies = Object.fromEntries(Object.entries(inferenceBodies).map(([path, body]) => [path, body(directives)]));
/** A limit in nanos: more than a test's streams use before the limit is in force. */
const limit = 12_000;
/** A limit in nanos that is set by a new file: higher, because a reload takes longer. */
const reloaded = 40_000;
/** The body of each of several streams that together produce 1,200 tokens a second, which cost 12,000 nanos. */
const together = (streams: number, tokens = 16_000) => ({
  messages: saying(`tokens=${tokens} ${pace(1200 / streams)}`),
});
/** The nodes that run one stream each; a single node runs two. */
const places = (nodes: readonly Sluice[]) => (nodes.length > 1 ? nodes : [nodes[0]!, nodes[0]!]);

const configTo = (url: string, gold: string) => `upstreams:
  main: { url: "${url}" }
models:
  - id: ${model}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    prices: { input: 0.001, output: 0.01 }
    routes: [{ upstream: main, model: m }]
plans:
  gold: ${inMoney(gold)}
  limitless: {}
metering: { currency: USD, checkpoint_s: 0.5 }
`;

type Fleet = Awaited<ReturnType<typeof startFleet>>;
type Member = Awaited<ReturnType<Fleet["member"]>>;

async function startFleet(store: "pglite" | "postgres", engine: Simulator) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-at-once-"));
  const database = store === "postgres" ? await migratedDatabase() : null;
  const file = (node: number) => join(folder, `sluice-${node}.yaml`);
  const rewrite = (node: number, gold: string) => writeFileSync(file(node), configTo(engine.url, gold));
  const nodes: Sluice[] = [];
  const start = (index: number) => {
    rewrite(index, "{}");
    const env = { SLUICE_CONFIG: file(index), ...(database ? { DATABASE_URL: database.url } : {}) };
    return startSluice({ store: "pglite", env, dataDir: join(folder, `data-${index}`) });
  };
  nodes.push(await start(0));
  // The first node makes the organization that the others find.
  if (database) nodes.push(...(await Promise.all([start(1), start(2)])));
  return {
    nodes,
    /** Rewrites a node's own configuration file, with this session limit on the plan gold. */
    rewrite,
    /** Creates an organization on this plan, with two keys; the options of the CLI apply to both keys. */
    async member(plan: string, ...options: string[]) {
      const { organization, id: keyId, key } = await newMember(nodes[0]!, plan, ...options);
      return { organization, keyId, key, otherKey: (await newKey(nodes[0]!, organization, ...options)).key };
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
      await database?.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function run(node: Sluice, key: string, path: string, stream: boolean, body: object = bodies[path]!) {
  // Resolves when a stream's first bytes have come.
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const ended = (async () => {
    const response = await fetch(node.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, ...body, stream }),
    });
    let text = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (text.length > 2_000) begin();
    }
    begin();
    const id = response.headers.get("x-service-request-id")!;
    return { id, status: response.status, text, at_ms: performance.now() };
  })();
  return { path, stream, node, begun, ended };
}

const receiptOf = (node: Sluice, key: string, id: string) => endedReceipt(node, id, { key });

const dataOf = (text: string) => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data!);

const engine = await startSimulator({});
afterAll(() => engine.stop());

describe.each(databaseKinds(import.meta.path))("on %s", (store) => {
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

  /**
   * Runs streams of each member on all nodes until they reach a limit in nanos, which `lower` sets. Checks that the
   * streams end at that limit, are whole and charged for the text that they sent, and that the next request on each
   * node is refused. Returns the errors of the refused requests, by the member's name in the test.
   */
  async function endsAt(nanos: number, members: Record<string, { member: Member; lower(): unknown }>) {
    const places_ = places(fleet.nodes);
    const body = together(places_.length * Object.keys(members).length);
    const all = Object.entries(members).map(([whose, { member, lower }]) => {
      return { whose, member, lower, running: places_.map((node) => run(node, member.key, chat, true, body)) };
    });
    await Promise.all(all.flatMap(({ running }) => running.map(({ begun }) => begun)));
    await Promise.all(all.map(({ lower }) => lower()));
    for (const { whose, member, running } of all) {
      let charged = 0;
      for (const { ended, node } of running) {
        const { id, text } = await ended;
        expect([whose, text]).toEqual([whose, expect.stringContaining('"finish_reason":"length"')]);
        expect(dataOf(text).at(-1)).toBe("[DONE]");
        const receipt = await receiptOf(node, member.otherKey, id);
        const whole = { outcome: "completed", stopped_by: "usage_window", cost: { uncharged: dollars(0) } };
        expect([whose, receipt]).toMatchObject([whose, whole]);
        charged += nanosOf(receipt.cost.charged);
      }
      expect([whose, charged > nanos * 0.9, charged <= nanos]).toEqual([whose, true, true]);
    }
    await holdsGone();
    const errors: [string, { code: string; limited_by: string }[]][] = [];
    for (const { whose, member } of all) {
      const refused = await Promise.all(fleet.nodes.map((node) => run(node, member.key, chat, true).ended));
      expect([whose, ...refused.map(({ status }) => status)]).toEqual([whose, ...fleet.nodes.map(() => 429)]);
      errors.push([whose, refused.map(({ text }) => JSON.parse(text).error)]);
    }
    return errors;
  }

  test("a plan that is lowered ends what runs at its new limit, on nodes with an older file too", async () => {
    const lower = () => {
      fleet.rewrite(0, `{ session: ${reloaded} }`);
      fleet.nodes[0]!.signal("SIGHUP");
    };
    const [[, errors] = []] = await endsAt(reloaded, { gold: { member: await fleet.member("gold"), lower } });
    for (const { code } of errors!) expect(code).toBe("usage_limit_reached");
  });

  const { json } = { json: (...words: string[]) => fleet.nodes[0]!.json<{ id: string }>(...words) };
  const own = (nanos: number) => `session=${typed(nanos)}`;
  const planSession = (nanos: number) => ["--limit", own(nanos)];
  const team = ({ organization }: Member, name: string) =>
    json("team", "create", "--org", organization, "--name", name);

  /**
   * For each owner of a limit, makes a member whose limit is unset (`isFirst`) or high, and a function that sets it.
   */
  const limited: Record<
    string,
    (isFirst: boolean) => Promise<{ member: Member; set(nanos: number): Promise<unknown> }>
  > = {
    key: async (isFirst) => {
      const member = await fleet.member("limitless", ...(isFirst ? [] : ["--limit", own(1e9)]));
      return { member, set: (nanos) => json("limit", "set", "key", member.keyId, own(nanos)) };
    },
    team: async (isFirst) => {
      const member = await fleet.member("limitless");
      const { id } = await team(member, "writers");
      await json("key", "update", member.keyId, "--team", id);
      if (!isFirst) await json("limit", "set", "team", id, own(1e9));
      return { member, set: (nanos) => json("limit", "set", "team", id, own(nanos)) };
    },
    "organization itself": async (isFirst) => {
      const member = await fleet.member("limitless");
      const set = (nanos: number) => json("limit", "set", "org", member.organization, own(nanos));
      if (!isFirst) await set(1e9);
      return { member, set };
    },
    organization: async (isFirst) => {
      const name = `of-one-${Bun.randomUUIDv7().slice(-12)}`;
      await json("plan", "create", name, ...(isFirst ? [] : planSession(1e9)));
      const member = await fleet.member(name);
      return { member, set: (nanos) => json("plan", "update", name, ...planSession(nanos)) };
    },
    "extra usage": async () => {
      const name = `full-${Bun.randomUUIDv7().slice(-12)}`;
      await json("plan", "create", name, ...planSession(1));
      const member = await fleet.member(name);
      const set = (nanos: number) => json("org", "extra-usage", member.organization, "on", "--cap", typed(nanos));
      await set(1e9);
      return { member, set };
    },
  };

  const ownLimits = ["key", "team"];

  // The embedded database runs the same SQL, and a difference between the owners of limits would show on Postgres too,
  // so one owner is enough here.
  const subjects = store === "postgres" || isDeep ? Object.keys(limited) : ["key"];

  /** Makes one member for each owner of a limit, with the function that sets the limit. */
  const begun = async (isFirst: boolean, among = subjects) =>
    Promise.all(among.map(async (whose) => ({ whose, ...(await limited[whose]!(isFirst)) })));

  test.each([true, false])("a limit of anyone ends what runs where it stands (its first: %p)", async (isFirst) => {
    const owners = await begun(isFirst, isFirst ? subjects.filter((whose) => whose !== "extra usage") : subjects);
    const members = owners.map(({ whose, member, set }) => [whose, { member, lower: () => set(limit) }]);
    for (const [whose, errors] of await endsAt(limit, Object.fromEntries(members))) {
      const limited_by = ownLimits.includes(whose) ? whose : "organization";
      for (const error of errors) expect([whose, error]).toMatchObject([whose, { limited_by }]);
    }
  });

  /** The error at the end of a stream, in the form of its protocol. */
  function failureIn(path: string, text: string): unknown {
    const data = dataOf(text);
    if (path === "/v1/messages") {
      expect(text).toContain("event: error\n");
      expect(text).not.toContain("message_stop");
      return JSON.parse(data.at(-1)!).error;
    }
    expect(data.at(-1)).toBe("[DONE]");
    const last = JSON.parse(data.at(-2)!);
    return path === "/v1/responses" && last.type === "response.failed" ? last.response.error : last.error;
  }

  test.each<[string, (member: Member) => string[], number, string]>([
    ["a key is revoked", ({ keyId }) => ["key", "revoke", keyId], 401, "revoked_api_key"],
    ["an organization is suspended", (one) => ["org", "suspend", one.organization], 403, "organization_suspended"],
    ["an organization is closed", (one) => ["org", "close", one.organization, "--yes"], 401, "revoked_api_key"],
  ])("where %s, its running requests end with their protocol's error", async (name, act, status, code) => {
    const member = await fleet.member("limitless");
    const bystander = await fleet.member("limitless");
    const other = run(fleet.nodes[0]!, bystander.key, chat, true);
    const running = fleet.nodes.flatMap((node) =>
      Object.keys(bodies).flatMap((path) => [true, false].map((stream) => run(node, member.key, path, stream))),
    );
    await Promise.all([other, ...running].filter(({ stream }) => stream).map(({ begun }) => begun));
    expect(engine.counts.requests).toBeGreaterThanOrEqual(running.length);
    await fleet.nodes[0]!.json(...act(member));
    const acted_ms = performance.now();
    const ended = await Promise.all(running.map(async (one) => ({ ...one, ...(await one.ended) })));
    // The error codes of a failed response are OpenAI's own, so only its message gives the reason.
    const message = expect.stringMatching(code.startsWith("revoked") ? /revoked/ : /suspended/);
    const told: Record<string, object> = {
      [chat]: { code },
      "/v1/messages": { details: { error_code: code } },
      "/v1/responses": { message },
    };
    for (const { path, stream, text, at_ms, ...one } of ended) {
      expect(at_ms - acted_ms).toBeLessThan(10_000 * busyness());
      expect(one.status).toBe(stream ? 200 : status);
      if (stream) expect(failureIn(path, text)).toMatchObject(told[path]!);
      else expect(text).toContain(code);
    }
    // The receipts are read with a key of the organization, so a suspended organization is resumed first.
    if (name.endsWith("suspended")) await fleet.nodes[0]!.json("org", "resume", member.organization);
    for (const { id, node, stream } of ended) {
      // No key of a closed organization can read the receipts; an operator can, as long as they are kept.
      const receipt = await (name.endsWith("closed")
        ? node.json<RequestReceipt>("request", "show", id)
        : receiptOf(node, member.otherKey, id));
      expect(receipt).toMatchObject({ outcome: "failed", error_code: code, recovered: false });
      if (stream) expect(receipt.usage.output_tokens).toBeGreaterThan(0);
      // An answer that was not streamed delivered nothing, so nothing is charged for it.
      expect(nanosOf(receipt.cost.charged) > 0).toBe(stream);
    }
    // The other organization's request runs on until that organization's own plan is removed.
    await fleet.nodes[0]!.json("org", "plan", bystander.organization, "--none");
    expect((await other.ended).text).toContain("no_active_plan");
    await holdsGone();
  });
});
