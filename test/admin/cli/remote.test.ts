/**
 * The CLI in all places: a command says and prints the same over the management interface, over the socket, and on the
 * database itself; and if something between the command and the database is wrong, the command says so clearly.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { remoteManagement } from "../../../src/admin/cli/remote.ts";
import { remoteAnswers } from "../../../src/admin/cli/remote-events.ts";
import { adminSocket, socketManagement } from "../../../src/admin/cli/socket.ts";
import { type Management, type VerbAnswer, verbNamed } from "../../../src/admin/management/verbs.ts";
import { authenticator } from "../../../src/core/auth/authenticate.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { refusedRequests } from "../../../src/stores/postgres/refused.ts";
import { revocations } from "../../../src/stores/postgres/revocations.ts";
import { type OperatorPort, operatorPort } from "../../core/http/operator-port.ts";
import { authority, written } from "../../harness/certificates.ts";
import { newMember } from "../../harness/members.ts";
import { dollars, typed } from "../../harness/money.ts";
import { until } from "../../harness/until.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";
import { type Shell, shell, shellOn } from "./shell.ts";

setDefaultTimeout(120_000);

let owned: Owned;
let port: OperatorPort;
let far: Shell;
let near: Shell;
let ways: [name: string, manage: Management][];
const folder = mkdtempSync(join(tmpdir(), "sluice-remote-"));
const ends: (() => Promise<void>)[] = [];

/** The answer as text, without the bounds of idle sessions, which move with the clock. */
const still = (answer: unknown): string =>
  JSON.stringify(answer).replace(/\\?"session\\?":\{(?:[^{}]|\{[^{}]*\})*\}/g, "");

beforeAll(async () => {
  owned = await openDatabase();
  port = await operatorPort(owned);
  const { db } = owned;
  const socket = await adminSocket({ dataDir: folder, actAs: () => port.act });
  ends.push(socket.stop);
  const { configuration } = shell().services;
  const reports = { provider: "Example AI" };
  // The same settings of reports as the node's.
  near = shellOn(db, { configuration: async () => ({ ...(await configuration()), reports }) });
  far = shell({
    now_ms: Date.now,
    environment: { SLUICE_SERVER: port.url, SLUICE_OPERATOR_TOKEN: port.tokens.admin },
    openStore: () => Promise.reject(new Error("the database's URL is needed by nobody")),
    storage: () => {
      throw new Error("nor the data folder");
    },
  });
  ways = [
    ["socket", (await socketManagement({ dataDir: folder, actor: "cli:ann" }))!],
    ["http", remoteManagement({ url: port.url, token: port.tokens.admin })],
  ];
});
afterAll(async () => {
  for (const end of ends) await end();
  await port?.stop();
  await owned?.drop();
  rmSync(folder, { recursive: true, force: true });
});

describe("the routes", () => {
  test("are those of the server that is named, over TLS at a port that has it", async () => {
    const routes = [{ upstream: "far", model: "acme/writer-1", state: "closed", requests: 0, tokens: 0, waiting: 0 }];
    const answer = () => Response.json({ routes });
    const certificate = authority().issue(["sluice.example"]);
    await using far = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
    await using secure = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1", fetch: answer },
      tls: { cert: certificate.certificate, key: certificate.key },
    });
    const here = { SLUICE_OPERATOR_PORT: `${secure.port}`, SLUICE_OPERATOR_TLS: "on" };
    const files = written(folder, "here", certificate);
    const tls = { SLUICE_TLS_CERTIFICATE_FILE: files.certificate, SLUICE_TLS_KEY_FILE: files.key };
    const cli = shell({ environment: { ...here, ...tls } });
    const elsewhere = shell({ environment: { SLUICE_OPERATOR_PORT: "1" } });
    for (const [one, words] of [
      [cli, "upstream list --json"],
      [elsewhere, `--server ${far.url.origin} upstream list --json`],
    ] as const)
      expect(await one.json(words)).toEqual(routes as never);
  });

  test.each(["upstream check gpu-1", "person try ann"])("'%s' takes no other server", async (words) => {
    const { code, err } = await shell().typed(`--server http://127.0.0.1:1 ${words}`);
    expect([code, err]).toEqual([2, expect.stringContaining("works on the node itself, without --server")]);
  });
});

describe("every verb", () => {
  test("that reads answers the same over each way", async () => {
    const { manage } = port;
    const key = await manage.createKey({ organization: "acme", name: "ü", models: ["acme/writer-1"] });
    await manage.setAnchor({ organization: "acme", anchor: "2026-12-01" });
    await manage.adjustUsage({ organization: "acme", window: "month", amount: typed(7), reason: "test" });
    const team = await manage.createTeam({ organization: "acme", name: "ü 1", limits: { week: "7" } });
    const other = await manage.createTeam({ organization: "globex", name: "ü 1" });
    await manage.updateTeamLimits({ team: other.id, keys: { session: "3" }, models: { "acme/*": { week: "2" } } });
    await manage.updateKey({ id: key.id, team: team.id });
    await manage.updateKeyLimits({ id: key.id, own: { concurrentRequests: 2 } });
    await manage.updateOrganizationLimits({ organization: "acme", keys: { session: "4" } });
    const person = await newMember(owned.db, "ann", { organization: key.organizationId });
    const requestId = `req_${Bun.randomUUIDv7().replaceAll("-", "")}`;
    await refusedRequests(owned.db).keep([
      {
        ...{ requestId, organizationId: key.organizationId, keyId: key.id, operation: "messages", age_ms: 0 },
        ...{ model: null, stream: null, errorCode: "usage_limit_reached", message: "" },
      },
    ]);
    const inputs = {
      pageOrganizations: { limit: 1 },
      findOrganization: { organization: "acme" },
      pageKeys: { organization: "acme", state: "active" },
      findKey: { id: key.id },
      listPlans: {},
      findPlan: { name: "pro" },
      findRequest: { id: requestId },
      checkUsage: { full: true },
      pageAudit: { order: "oldest", limit: 2, cursor: "1" },
      auditHead: {},
      pageOperators: {},
      pageTeams: { organization: "globex", limit: 1 },
      findTeam: { organization: "acme", team: "ü 1" },
      findOrganizationLimits: { organization: "acme", of: "keys", limit: 1 },
      findTeamLimits: { team: other.id },
      findKeyLimits: { id: key.id },
      findPersonLimits: { organization: "acme", person },
    } satisfies Partial<Record<keyof Management, object>>;
    for (const [verb, input] of Object.entries(inputs)) {
      for (const [name, way] of ways) {
        const here = await (manage[verb as keyof Management] as (input: unknown) => Promise<unknown>)(input);
        const there = await (way[verb as keyof Management] as (input: unknown) => Promise<unknown>)(input);
        // The use of an operator is noted at each request, so the answers differ.
        if (verb === "pageOperators") expect((there as { data: object[] }).data).toHaveLength(3);
        else expect([name, verb, still(there)]).toEqual([name, verb, still(here)]);
      }
    }
  });

  test("a report reads the same over each way, whatever it is by", async () => {
    for (const by of [undefined, "organization,team,key,model,day", "month,operation,outcome", "hour"]) {
      const here = await port.manage.reportUsage({ by });
      for (const [name, way] of ways) expect([name, await reportOf(way, by)]).toEqual([name, shownOf(here)]);
      expect(here.rows.length).toBeGreaterThan(0);
    }
  });
  // The report without the instant at which it was made, which always differs.
  const shownOf = ({ asOf: _, ...report }: VerbAnswer<"reportUsage">) => report;
  const reportOf = async (way: Management, by: string | undefined) => shownOf(await way.reportUsage({ by }));

  test("that changes something does the same over each way, and tells it", async () => {
    for (const [name, way] of ways) {
      const organization = `by-${name}`;
      const made = await way.createOrganization({ slug: organization, name: "By", plan: "starter" });
      expect(await port.manage.findOrganization({ organization })).toMatchObject(made);
      const first = { organization, version: made.version };
      expect(await way.setPlan({ ...first, plan: "pro" })).toMatchObject({ plan: "pro" });
      await expect(way.setPlan({ ...first, plan: null })).rejects.toThrow("version 2 now");
      const { nextAnchor } = await way.setAnchor({ organization, anchor: "2027-01-01" });
      expect(nextAnchor).toMatchObject({ anchorAt: new Date("2027-01-01") });
      const adjusted = await way.adjustUsage({ organization, window: "week", amount: typed(9), reason: "test" });
      expect(adjusted).toMatchObject({ organization, entries: [{ window: "week", amount: dollars(9) }] });
      const { key: secret, id } = await way.createKey({ organization, name: "k", limits: { session: "2" } });
      expect(secret).toStartWith("slk_");
      expect((await way.rotateKey({ id, grace: "1h" })).secrets).toHaveLength(2);
      const changed = { owner: "ann", labels: { a: "b" }, allowFrom: ["10.0.0.0/8"], expiresAt: null };
      expect(await way.updateKey({ id, ...changed })).toMatchObject(changed);
      expect((await way.revokeKey({ id })).revokedAt).toBeInstanceOf(Date);
    }
  });

  test("that refuses says the same words over each way", async () => {
    for (const [, way] of ways) {
      await expect(way.createOrganization({ slug: "acme" })).rejects.toThrow("already exists");
      await expect(way.findKey({ id: "key_0" })).rejects.toThrow("There is no key 'key_0'");
      await expect(way.createKey({ organization: "acme", name: "" })).rejects.toThrow();
      await expect(way.setPlan({ organization: "acme", plan: "gold" })).rejects.toThrow("There is no plan 'gold'");
    }
  });
});

describe("a command", () => {
  test("prints the same from far and near, for people and as JSON", async () => {
    await port.manage.createKey({ organization: "globex", name: "app", expiresAt: "2030-01-31" });
    await port.manage.createTeam({ organization: "globex", name: "research", limits: { month: "70" } });
    const { data: keys } = await port.manage.pageKeys({ organization: "globex" });
    for (const words of [
      "org list",
      "org show acme",
      "key list --org globex",
      `key show ${keys[0]!.id}`,
      "usage check",
      "team list --org globex",
      "team show --org globex research",
      `key update ${keys[0]!.id} --team research`,
      `limit set ${keys[0]!.id} week=5`,
      "limit set team research month=10 --models acme/*",
      `limit raise research month=80 --until ${new Date(Date.now() + 20 * 86_400_000).toISOString().slice(0, 10)}`,
      "limit show research --org globex",
      `key update ${keys[0]!.id} --owner ann --label a=b --label c= --allow-from 10.0.0.0/8`,
      `key update ${keys[0]!.id} --allow-from all --no-owner --expires never --models all`,
      "key list --org globex --state active --unused-for 0s",
      "limit set org globex week=7 --keys",
      "limit show org globex",
      "limit show org globex --of keys",
      "org policy globex --key-unused 30d --key-lifetime 90",
      "organization policy globex --key-unused none --content none",
      "org rename globex --name Globex",
      "org close globex",
      "usage report --by organization,key --csv",
      "audit list --limit 1000",
      "audit head",
      "audit export",
      "audit verify",
      "org show nobody",
    ]) {
      if (!words.startsWith("audit export"))
        expect(still(await far.typed(`${words} --json`))).toEqual(still(await near.typed(`${words} --json`)));
      // People read what JSON has: words are made of the answer in the command's own process.
      if (/ (show|list|report|check|export|verify)\b/.test(words))
        expect([words, await far.typed(words)]).toEqual([words, await near.typed(words)]);
    }
    expect((await far.typed("plan list")).out).toContain("pro");
    expect((await far.typed("operator list")).out).toContain("a-organization-admin");
    expect((await far.typed("usage show acme")).out).toContain("running requests");
  });

  test("counts for clients when it was typed: a suspension, and each secret from its beginning to its end", async () => {
    const auth = authenticator({
      directory: directory(owned.db),
      now_ms: () => performance.now(),
      limits: { cache_ms: 60_000 },
    });
    // The cache holds for a minute: a change that is seen sooner came by message.
    ends.push(() => auth.stop(), await revocations(owned.db, { changed: auth.forget }));
    const met = (key: unknown) =>
      auth.authenticate(new Headers({ authorization: `Bearer ${key}` }), "192.0.2.1").then(
        ({ organization }) => organization.slug,
        ({ code }: { code: string }) => code,
      );
    const meets = (key: unknown, what: string) => until(async () => (await met(key)) === what);
    await near.typed("org create lived --plan pro");
    const { id, key: first } = await near.json("key create --org lived --name app --json");
    const rotated = async (grace = "") => (await near.json(`key rotate ${id}${grace} --json`)).key;
    await meets(first, "lived");
    await near.typed("org suspend lived");
    await meets(first, "organization_suspended");
    await near.typed("org resume lived");
    await meets(first, "lived");
    const second = await rotated();
    await meets(second, "lived");
    await meets(first, "lived");
    await near.typed(`key revoke ${id} --old`);
    await meets(first, "revoked_api_key");
    await meets(second, "lived");
    const third = await rotated(" --grace 0s");
    await meets(second, "revoked_api_key");
    const fourth = await rotated(" --grace 1s");
    await meets(third, "expired_api_key");
    await meets(fourth, "lived");
    await near.typed(`key revoke ${id}`);
    await meets(fourth, "revoked_api_key");
  });

  test("names what is missing: a token, a safe URL, a server; and works with --server too", async () => {
    const bare = shell({ environment: {} });
    expect((await bare.typed(`--server ${port.url} org list`)).err).toContain("SLUICE_OPERATOR_TOKEN");
    const token = { SLUICE_OPERATOR_TOKEN: port.tokens.viewer };
    const viewer = shell({ environment: token });
    expect((await viewer.typed(`org list --server ${port.url}`)).out).toContain("globex");
    expect((await viewer.typed(`org suspend acme --server ${port.url}`)).err).toContain("needs the role admin");
    expect((await viewer.typed("org list --server http://sluice.example:9090")).err).toContain("in the clear");
    expect((await viewer.typed("org list --server nowhere")).err).toContain("not a server's URL");
    for (const place of ["ann@sluice.example", ":word@sluice.example", "sluice.example?a=b"])
      expect((await viewer.typed(`org list --server https://${place}`)).err).toContain("has no user and no query");
    expect((await viewer.typed("org list --server http://127.0.0.1:1")).err).toContain("cannot be reached");
    expect(await viewer.typed("serve --server http://127.0.0.1:1")).toMatchObject({ code: 2 });
    const file = join(folder, "token");
    writeFileSync(file, `${port.tokens.viewer}\n`);
    const byFile = shell({ environment: { SLUICE_OPERATOR_TOKEN_FILE: file, SLUICE_SERVER: port.url } });
    expect((await byFile.typed("org list")).code).toBe(0);
    const both = shell({ environment: { ...token, SLUICE_OPERATOR_TOKEN_FILE: file, SLUICE_SERVER: port.url } });
    expect((await both.typed("org list")).err).toContain("not both");
    const wrong = shell({ environment: { SLUICE_OPERATOR_TOKEN: "slk_1", SLUICE_SERVER: port.url } });
    expect((await wrong.typed("org list")).err).toContain("not valid");
  });
});

test("a watch goes on at another node where one ends its stream, and ends with a refusal or its watcher", async () => {
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  let streams = 0;
  const nodes = Bun.serve({
    port: 0,
    fetch({ headers }) {
      if (headers.get("authorization") !== "Bearer good")
        return Response.json({ error: { message: "Not valid.", code: "invalid_operator_token" } }, { status: 401 });
      streams += 1;
      return new Response(event("fleet", { streams }) + event("error", { error: { message: "about to stop" } }));
    },
  });
  try {
    const stopped = new AbortController();
    const watched = (token: string) =>
      remoteAnswers({ url: String(nodes.url), token }, verbNamed("getFleet"), stopped.signal);
    await expect(watched("bad").next()).rejects.toThrow("Not valid.");
    const answers: unknown[] = [];
    for await (const answer of watched("good")) {
      answers.push(answer);
      if (streams === 2) stopped.abort();
    }
    expect(answers).toEqual([{ streams: 1 }, { streams: 2 }]);
  } finally {
    await nodes.stop(true);
  }
});
