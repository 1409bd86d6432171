// `sluice login`, `token` and `logout`, run by a user, against a node with oidc-provider.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../../src/admin/cli/run.ts";
import { openedInBrowser } from "../../../src/admin/cli/sign-in/browser.ts";
import { shell } from "../../admin/cli/shell.ts";
import { approve, type Laptop, laptop } from "../../harness/laptop.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { typedHere } from "./typed-here.ts";

setDefaultTimeout(60_000);

describe("signing in from the command line", () => {
  let node: PeopleNode;
  let home: Laptop;
  const secrets: string[] = [];
  beforeAll(async () => {
    home = laptop();
    node = await startPeopleNode({ secrets });
    node.provider.account = "ann";
    node.provider.claims.set("ann", { name: "Ann", email: "ann@x.test", email_verified: true, groups: ["research"] });
  });
  afterAll(async () => {
    home?.[Symbol.dispose]();
    await node?.[Symbol.asyncDispose]();
  });

  const models = (token: string) =>
    fetch(`${node.serviceUrl}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  const kept = () => JSON.parse(readFileSync(home.signInFile(node.serviceUrl), "utf8"));
  const change = (changes: object) =>
    writeFileSync(home.signInFile(node.serviceUrl), JSON.stringify({ ...kept(), ...changes }));
  /** Records the tokens that a machine stores now, because the log is searched for them at the end. */
  const note = (on: Laptop) => {
    const file = on.signInFile(node.serviceUrl);
    const { access_token, refresh_token } = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : ({} as never);
    secrets.push(...[access_token, refresh_token].filter((one) => one !== undefined));
  };
  /** Signs in unless an earlier test has done so, because each wait for an approval takes five seconds. */
  const signedIn = async () => {
    if (existsSync(home.signInFile(node.serviceUrl))) return null;
    const done = await home.signIn(node);
    note(home);
    return done;
  };
  const token = async (url?: string, on = home) => {
    const { code, stdout, stderr } = await typedHere(on, "token", ...(url === undefined ? [] : [url]));
    if (code === 0) note(on);
    return { code, token: stdout.trim(), stderr };
  };

  test("prints an address and a code, waits for the approval, and keeps a token that works as a key", async () => {
    const { stdout, stderr, code } = (await signedIn())!;
    expect([code, stdout]).toEqual([0, `Signed in at ${node.serviceUrl} as ann@x.test.\n`]);
    const code_shown = /Code {2}([A-Z]{4}-[A-Z]{4})\n/.exec(stderr)?.[1];
    expect(stderr).toContain(`Open  ${node.serviceUrl}/device?user_code=${code_shown}\n`);
    // The output is a pipe and not a terminal, so no browser is opened.
    expect(stderr).not.toContain("in your browser");
    const got = await token();
    expect(got).toMatchObject({ code: 0, stderr: "" });
    expect((await models(got.token)).status).toBe(200);
    // While the token is valid, the command prints the same token, also when the server is named, with or without
    // `/v1/`.
    expect((await token(node.serviceUrl)).token).toBe(got.token);
    expect((await token(`${node.serviceUrl}/v1/`)).token).toBe(got.token);
    // Only the user who signed in may read the file.
    const file = home.signInFile(node.serviceUrl);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(file, "..")).mode & 0o777).toBe(0o700);
  });

  test("renews a token whose end is near, once for all processes that ask", async () => {
    await signedIn();
    const before = kept();
    change({ renew_at_ms: 0 });
    const all = await Promise.all([1, 2, 3, 4].map(() => home.run("token")));
    note(home);
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    const [renewed, ...others] = new Set(all.map(({ stdout }) => stdout.trim()));
    expect(others).toEqual([]);
    expect(renewed).not.toBe(before.access_token);
    expect((await models(renewed!)).status).toBe(200);
  });

  test("waits for no process that was killed under the lock", async () => {
    await signedIn();
    change({ renew_at_ms: 0 });
    const lock = `${home.signInFile(node.serviceUrl)}.lock`;
    writeFileSync(lock, "");
    utimesSync(lock, new Date(0), new Date(0));
    expect((await token()).code).toBe(0);
    expect(readdirSync(join(lock, "..")).filter((name) => name.includes("lock"))).toEqual([]);
  });

  test("gives the token that holds while the server is away", async () => {
    await signedIn();
    const before = kept();
    node.provider.away = true;
    change({ renew_at_ms: 0 });
    expect((await token()).token).toBe(before.access_token);
    change({ renew_at_ms: 0, ends_at_ms: 0 });
    expect(await token()).toMatchObject({ code: 1, token: "" });
    // The sign-in was not lost: it works again when the issuer is back.
    node.provider.away = false;
    expect((await token()).code).toBe(0);
  });

  test("asks at once for another token when the server no longer takes the last one, whatever its time", async () => {
    await signedIn();
    const { token: first } = await token();
    const dead = { access_token: "slt_0000000000000000000000000000000003Pk4UO" };
    change(dead);
    const { code, token: next } = await token();
    expect(code).toBe(0);
    expect(next).not.toBe(dead.access_token);
    expect((await models(next)).status).toBe(200);
    expect((await models(first)).status).toBe(200);
    // `sluice token` asks the server whether the token is still valid only if it printed that token a short time ago.
    utimesSync(home.signInFile(node.serviceUrl), new Date(0), new Date(0));
    change(dead);
    utimesSync(home.signInFile(node.serviceUrl), new Date(0), new Date(0));
    expect((await token()).token).toBe(dead.access_token);
    expect((await token()).token).not.toBe(dead.access_token);
  });

  test("a server that cannot be asked about a token gets it as it is", async () => {
    await signedIn();
    const before = kept();
    const silent = "http://127.0.0.1:1";
    writeFileSync(home.signInFile(silent), JSON.stringify(before));
    for (let times = 0; times < 2; times++) expect((await token(silent)).token).toBe(before.access_token);
    rmSync(home.signInFile(silent));
  });

  test("several servers stand side by side, and the newest is meant where none is named", async () => {
    await signedIn();
    const other = node.serviceUrl.replace("127.0.0.1", "localhost");
    expect((await typedHere(home.with({ SLUICE_KEY: node.sluice.key }), "login", other, "--key")).code).toBe(0);
    expect((await token()).token).toBe(node.sluice.key);
    expect((await token(node.serviceUrl)).token).toBe(kept().access_token);
    expect((await typedHere(home, "logout")).code).toBe(0);
    expect((await token()).token).toBe(kept().access_token);
  });

  test("says that the sign-in has ended once the issuer has let its person go", async () => {
    await signedIn();
    node.provider.gone.add("ann");
    change({ renew_at_ms: 0 });
    const refused = await token();
    node.provider.gone.delete("ann");
    expect(refused).toMatchObject({ code: 1, token: "" });
    expect(refused.stderr).toBe(
      `sluice: Your sign-in at ${node.serviceUrl} has ended. Run: sluice login ${node.serviceUrl}\n`,
    );
  });

  test("in a terminal on a desktop the page opens with the code filled in, unless the user wants none; a logout ends the sign-in", async () => {
    using desktop = laptop();
    const opened = join(desktop.folder, "opened");
    writeFileSync(join(desktop.folder, "xdg-open"), `#!/bin/sh\necho "$1" >>'${opened}'\n`, { mode: 0o755 });
    const environment = { ...desktop.env, PATH: `${desktop.folder}:${desktop.env.PATH}`, DISPLAY: ":0" };
    const login = (words: string[]) => {
      let said = "";
      const err = (text: string) => {
        said += text;
      };
      const terminal = { out() {}, err, width: 80, color: false, interactive: true };
      const { services } = shell({ terminal, environment, now_ms: Date.now });
      return { done: run(["login", ...words], services), said: () => said };
    };
    const first = login([node.serviceUrl]);
    // The program that opens web pages creates the file before it writes into it.
    await until(() => existsSync(opened) && readFileSync(opened, "utf8").includes("\n"), 10_000, "the browser");
    const [page] = readFileSync(opened, "utf8").split("\n");
    expect(page).toMatch(/\/device\?user_code=[A-Z]{4}-[A-Z]{4}$/);
    expect(first.said()).toContain("It opens in your browser.");
    await approve(node, new URL(page!).searchParams.get("user_code")!);
    expect(await first.done).toBe(0);
    note(desktop);
    // A sign-out ends the sign-in on the machine and on the server, and the server's URL stays stored.
    const { token: ended } = await token(undefined, desktop);
    const left = await desktop.run("logout");
    expect(left).toMatchObject({ code: 0, stdout: `Signed out at ${node.serviceUrl}.\n` });
    await until(async () => (await models(ended)).status === 401, 1_000, "the token to end");
    expect(await token(undefined, desktop)).toMatchObject({ code: 1, token: "" });
    expect((await typedHere(desktop, "logout", node.serviceUrl)).code).toBe(1);
    const again = login(["--no-browser"]);
    await until(() => again.said().includes("Code"), 10_000, "the code");
    expect(again.said()).not.toContain("in your browser");
    await approve(node, /Code {2}(\S+)/.exec(again.said())![1]!);
    expect(await again.done).toBe(0);
    note(desktop);
    // No browser is opened if there is no desktop, if the desktop is on another machine, or if the output is not a
    // terminal.
    const { terminal } = shell({ environment }).services;
    const seen = { ...terminal, width: 80 };
    for (const where of [
      { environment: { ...environment, DISPLAY: "" }, terminal: seen },
      { environment: { ...environment, SSH_CONNECTION: "10.0.0.1 22" }, terminal: seen },
      { environment, terminal },
    ])
      expect(openedInBrowser(where, page!, "linux")).toBe(false);
    expect(readFileSync(opened, "utf8")).toBe(`${page}\n`);
  });

  test("without a server, the first sign-in says where its address is", async () => {
    using other = laptop();
    const { code, stderr } = await typedHere(other, "login");
    expect([code, stderr]).toEqual([2, expect.stringContaining("sluice login https://sluice.example")]);
  });

  test("a key is kept in place of a person, from the environment or standard input, and never from the arguments", async () => {
    using other = laptop();
    const byEnvironment = await typedHere(
      other.with({ SLUICE_KEY: node.sluice.key }),
      ...["login", node.serviceUrl, "--key"],
    );
    expect(byEnvironment).toMatchObject({ code: 0, stdout: `Kept the key for ${node.serviceUrl}.\n` });
    expect((await token(undefined, other)).token).toBe(node.sluice.key);
    const byInput = await other.typing(`${node.sluice.key}\n`).run("login", node.serviceUrl, "--key");
    expect(byInput.code).toBe(0);
    expect((await typedHere(other, "login", node.serviceUrl, "--key", node.sluice.key)).code).toBe(2);
    const { code, stdout } = await typedHere(other, "logout", "--json");
    expect([code, JSON.parse(stdout)]).toEqual([0, { url: node.serviceUrl, kind: "key" }]);
    expect((await models(node.sluice.key)).status).toBe(200);
  });

  test("a key that the server doesn't know, or half of one, is not kept", async () => {
    using other = laptop();
    const unknown = "slk_0000000000000000000000000000000003Pk4UO";
    for (const key of [unknown, node.sluice.key.slice(0, 20), "", "slk_", "é"]) {
      const { code, stderr } = await typedHere(other.with({ SLUICE_KEY: key }), "login", node.serviceUrl, "--key");
      expect(code).toBe(1);
      expect(stderr).toStartWith("sluice: ");
    }
    expect((await token(undefined, other)).code).toBe(1);
  });

  test("nothing goes to an address that is not safe, or that is no server", async () => {
    for (const url of ["http://sluice.example", "sluice.example", "https://ann:x@sluice.example", "", "https://a/?x"])
      expect((await typedHere(home, "login", url)).code).toBe(1);
    const plain = Bun.serve({ port: 0, fetch: () => new Response("hello") });
    const { stderr, code } = await typedHere(home, "login", plain.url.origin);
    plain.stop(true);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Nobody can sign in at")]);
    expect((await typedHere(home, "login", plain.url.origin)).stderr).toContain("cannot be reached");
  });

  test("a file that is damaged is named", async () => {
    await typedHere(home.with({ SLUICE_KEY: node.sluice.key }), "login", node.serviceUrl, "--key");
    for (const text of ["", "{", "null", "[]", '{"kind":"person"}']) {
      writeFileSync(home.signInFile(node.serviceUrl), text);
      expect((await token()).stderr).toContain("is damaged. Sign in again");
    }
  });
});

test("a server that names other origins gets none of the tokens there", async () => {
  const asked: string[] = [];
  const thief = Bun.serve({ port: 0, fetch: ({ url }) => Response.json({ asked: asked.push(url) }) });
  const server = Bun.serve({
    port: 0,
    fetch(request) {
      asked.push(new URL(request.url).pathname);
      const endpoint = `${thief.url.origin}/steal`;
      if (request.url.includes(".well-known"))
        return Response.json(
          Object.fromEntries(
            ["token", "device_authorization", "revocation"].map((name) => [`${name}_endpoint`, endpoint]),
          ),
        );
      return Response.json({ error: "access_denied", error_description: "No." }, { status: 400 });
    },
  });
  using home = laptop();
  expect(await typedHere(home, "login", server.url.origin)).toMatchObject({ code: 1, stderr: "sluice: No.\n" });
  expect(asked).toEqual(["/.well-known/oauth-authorization-server", "/oauth/device_authorization"]);
  await Promise.all([server.stop(true), thief.stop(true)]);
});
