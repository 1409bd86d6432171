/**
 * A command prints the same whether it uses the management interface over HTTP or the database directly. If the
 * connection fails, the command reports the cause clearly.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { remoteManagement } from "../../../src/admin/cli/remote.ts";
import { remoteAnswers } from "../../../src/admin/cli/remote-events.ts";
import { verbNamed } from "../../../src/admin/management/verbs.ts";
import { authenticator } from "../../../src/core/auth/authenticate.ts";
import { directory } from "../../../src/stores/postgres/directory.ts";
import { revocations } from "../../../src/stores/postgres/revocations.ts";
import { type OperatorPort, operatorPort } from "../../core/http/operator-port.ts";
import { authority, written } from "../../harness/certificates.ts";
import { program } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";
import { type Shell, shell, shellOn } from "./shell.ts";

setDefaultTimeout(120_000);

let owned: Owned;
let port: OperatorPort;
let far: Shell;
let near: Shell;
const folder = mkdtempSync(join(tmpdir(), "sluice-remote-"));
const ends: (() => Promise<void>)[] = [];

/** The output as text, without the time limits of idle sessions, which change with the clock. */
const still = (answer: unknown): string =>
  JSON.stringify(answer).replace(/\\?"session\\?":\{(?:[^{}]|\{[^{}]*\})*\}/g, "");

beforeAll(async () => {
  owned = await openDatabase();
  port = await operatorPort(owned);
  const { db } = owned;
  const { configuration } = shell().services;
  const reports = { provider: "Example AI" };
  // The command line on the database gets the same report settings as the node.
  near = shellOn(db, { configuration: async () => ({ ...(await configuration()), reports }) });
  far = shell({
    now_ms: Date.now,
    environment: { SLUICE_SERVER: port.url, SLUICE_OPERATOR_TOKEN: port.tokens.admin },
    openStore: () => Promise.reject(new Error("the database's URL is needed by nobody")),
    storage: () => {
      throw new Error("nor the data folder");
    },
  });
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
      // The text output is compared, too: each process formats it from the verb's result.
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
    // The cache lasts a minute, so an earlier effect of a change shows that a revocation message arrived.
    ends.push(() => auth.stop(), await revocations(owned.db, { changed: auth.forget }));
    const met = (key: unknown) =>
      Promise.try(() => auth.authenticate(new Headers({ authorization: `Bearer ${key}` }), "192.0.2.1")).then(
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

test("a token for a server of this machine passes no proxy, to which it would be plain text", async () => {
  const passed: string[] = [];
  const proxy = Bun.serve({ port: 0, fetch: ({ url }) => Response.json(passed.push(url)) });
  const at = `http://127.0.0.1:${proxy.port}`;
  const env = { PATH: process.env.PATH ?? "", HOME: folder, HTTP_PROXY: at, SLUICE_OPERATOR_TOKEN: port.tokens.viewer };
  const server = port.url.replace("localhost", "127.0.0.1");
  const typed = (...words: string[]) => Bun.spawn([...program, ...words], { env, stdout: "pipe", stderr: "pipe" });
  const listed = typed("org", "list", "--server", server);
  expect([await listed.exited, await new Response(listed.stdout).text()]).toEqual([
    0,
    expect.stringContaining("globex"),
  ]);
  const watch = typed("fleet", "--watch", "--json", "--server", server);
  for await (const _ of watch.stdout) break;
  watch.kill();
  await watch.exited;
  expect(await typed("login", server, "--key").exited).toBe(1);
  expect(passed).toEqual([]);
  await proxy.stop(true);
});

test.each(["", ".", ".."])("the name '%s' leads to no other path of the server", async (organization) => {
  const there = remoteManagement({ url: port.url, token: port.tokens.admin });
  const refused = there.findOrganization({ organization });
  await expect(refused).rejects.toMatchObject({ code: "resource_not_found", message: `'${organization}' is no name.` });
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
