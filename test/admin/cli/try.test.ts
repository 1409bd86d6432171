// `sluice try`, run by a signed-in person, and by an operator who gives a key's ID, on a node with the simulator.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { modelEntry } from "../../features/operations/model-entry.ts";
import { freePort } from "../../harness/daemon.ts";
import { type Laptop, laptop } from "../../harness/laptop.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";

setDefaultTimeout(60_000);

const prices = { input: 0.01, output: 0.04 };
const entries = [
  modelEntry("acme/chat-1", "chat", "simulator", { capabilities: ["tools"], prices }),
  modelEntry("acme/completion-1", "completion", "simulator", { prices }),
  modelEntry("acme/embedding-1", "embedding", "simulator"),
  modelEntry("acme/rerank-1", "rerank", "simulator"),
];

let sluice: Sluice;
let home: Laptop;
let operatorUrl: string;
let model: string;
beforeAll(async () => {
  const port = String(await freePort());
  sluice = await startSluice({
    env: { SLUICE_OPERATOR_PORT: port },
    config: `metering: { currency: USD }\nmodels:${entries.join("")}`,
  });
  operatorUrl = `http://127.0.0.1:${port}`;
  home = laptop();
  const { data } = (await (await sluice.fetch("/v1/models")).json()) as { data: { id: string }[] };
  model = data[0]!.id;
});
afterAll(async () => {
  home?.[Symbol.dispose]();
  await sluice?.stop();
});

test("asks the first model as who is signed in, and shows the answer with its receipt", async () => {
  expect((await home.run("try")).stderr).toContain("You are not signed in");
  await home.with({ SLUICE_KEY: sluice.key }).run("login", sluice.url, "--key");
  const { code, stdout, stderr } = await home.run("try", "--message", "What is a token?");
  expect([code, stderr]).toEqual([0, ""]);
  const [answer = "", receipt = ""] = stdout.split("\n\n");
  expect(answer.trim().length).toBeGreaterThan(0);
  expect(receipt).toMatch(/^request +req_[0-9a-f]{32}\nmodel +\S+\noutcome +completed\ntook +[\d,]+ ms\n/);
  expect(receipt).toMatch(/\ntokens +\d+ in, \d+ out\ncost +\$[\d.]+ charged\nsession +[\d.]+ % → [\d.]+ %\n/);
});

test("answers JSON with the receipt that the service has", async () => {
  const { code, stdout } = await home.run("try", model, "--json");
  const said = JSON.parse(stdout);
  expect(code).toBe(0);
  expect(said).toMatchObject({ model, text: expect.stringMatching(/\S/) });
  const stored = await (await sluice.fetch(`/v1/service/requests/${said.request_id}`)).json();
  expect(said.receipt).toEqual(stored);
  expect(Number(said.receipt.cost.charged.amount)).toBeGreaterThan(0);
});

test("waits for the receipt of a request that is still running there", async () => {
  let asked = 0;
  // A fake service, whose receipt at first says that the request is still running.
  const late = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const response = await fetch(sluice.url + pathname, request);
      if (!pathname.startsWith("/v1/service/requests/") || asked++ > 0) return response;
      return Response.json({ ...((await response.json()) as object), outcome: "running" });
    },
  });
  try {
    await home.with({ SLUICE_KEY: sluice.key }).run("login", late.url.origin, "--key");
    const { stdout } = await home.run("try", model, "--at", late.url.origin, "--json");
    expect(JSON.parse(stdout).receipt).toMatchObject({ outcome: "completed" });
    expect(asked).toBeGreaterThan(1);
  } finally {
    await home.run("logout", late.url.origin);
    await late.stop(true);
  }
});

const documents = ["--document", "Boats lie in the harbour.", "--document", "The tide is out at noon."];
const trials: [kind: string, words: string[], said: RegExp, operation: string][] = [
  ["chat", [], /\S/, "chat.completions"],
  ["completion", ["--message", "The tide"], /\S/, "completions"],
  ["embedding", ["--message", "The tide"], /^256 numbers: -?[\d.e-]+(, -?[\d.e-]+){7}, …$/, "embeddings"],
  ["rerank", ["--message", "When is the tide out?", ...documents], /^[\d.]+ {2}The tide is out at noon\.\n/, "rerank"],
  ["rerank", [], /^[\d.]+ {2}Hello, and welcome\.\n/, "rerank"],
];

test.each(trials)("tries a model for %s by its kind, with %p", async (kind, words, said, operation) => {
  await home.with({ SLUICE_KEY: sluice.key }).run("login", sluice.url, "--key");
  const { code, stdout } = await home.run("try", `acme/${kind}-1`, ...words, "--json");
  expect(code).toBe(0);
  const { text, receipt } = JSON.parse(stdout);
  expect(text).toMatch(said);
  expect(receipt).toMatchObject({ operation, outcome: "completed" });
});

test("an operator tries a model of each kind as a key, by its ID and without its secret, and at no other path", async () => {
  const { token } = await sluice.json<{ token: string }>("operator", "create", "bea", "--role", "admin");
  const { id } = await sluice.json<{ id: string }>("key", "create", "--org", sluice.organization, "--name", "tried");
  const shell = home.with({ SLUICE_SERVER: operatorUrl, SLUICE_OPERATOR_TOKEN: token });
  for (const [kind, , , operation] of trials) {
    const { code, stdout } = await shell.run("try", `acme/${kind}-1`, "--key", id, "--json");
    expect([code, JSON.parse(stdout).receipt]).toMatchObject([0, { key_id: id, operation, outcome: "completed" }]);
  }
  const elsewhere = await fetch(`${operatorUrl}/management/v1/try?key=${id}&path=/v1/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: "{}",
  });
  expect([elsewhere.status, await elsewhere.json()]).toMatchObject([400, { error: { param: "path" } }]);
  expect((await shell.run("try", model)).stderr).toContain("name it with --key");
  expect((await shell.run("try", "--key", id)).stderr).toContain("Name a model");
  expect((await home.run("try", "--key", id)).stderr).toContain("--key is for operators");
});

test("says in the service's words why a request was refused", async () => {
  const { code, stdout, stderr } = await home.run("try", "acme/nothing");
  expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining("acme/nothing")]);
});

test("on the machine of a node with the embedded database, the socket needs no token", async () => {
  await using ending = new AsyncDisposableStack();
  const local = await startSluice({ store: "pglite" });
  ending.defer(async () => void (await local.stop()));
  const { id } = await local.json<{ id: string }>("key", "create", "--org", local.organization, "--name", "tried");
  const listed = (await (await local.fetch("/v1/models")).json()) as { data: { id: string }[] };
  const model = listed.data.at(-1)!.id;
  const said = await local.json<{ text: string; receipt: object }>("try", model, "--key", id);
  expect(said).toMatchObject({ text: expect.stringMatching(/\S/), receipt: { key_id: id, outcome: "completed" } });
  const shown = await local.cli("try", model, "--key", id);
  expect([shown.code, shown.stderr]).toEqual([0, ""]);
  expect(shown.stdout).toMatch(/\S\n\nrequest +req_[0-9a-f]{32}\n/);
  const refused = await local.cli("try", "acme/nothing", "--key", id);
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, "", expect.stringContaining("acme/nothing")]);
  const unknown = await local.cli("try", model, "--key", `key_${"0".repeat(32)}`);
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("There is no key")]);
  await local.json("key", "revoke", id, "--yes");
  expect((await local.cli("try", model, "--key", id)).code).toBe(1);
});
