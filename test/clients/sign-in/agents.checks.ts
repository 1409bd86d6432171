/**
 * Measures each agent's way from an installed program to its first response by a person's sign-in, in two steps; prints
 * the seconds of each step. Codex must also go on when its token expires during its work. Run by `npm run test:clients
 * -- sign-in`.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PeopleNode } from "../../harness/people-node.ts";
import { runToEnd } from "../agent-process.ts";
import { startScriptedEngine } from "../scripted-engine.ts";
import { watched } from "../traffic.ts";
import { desk, model, startedNode } from "./desk.ts";

setDefaultTimeout(180_000);

const engine = startScriptedEngine();
let node: PeopleNode;
beforeAll(async () => {
  node = await startedNode({ SLUICE_UPSTREAM_URL: engine.url });
  node.provider.claims.set("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
});
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  engine.stop();
});

const answer = "It is all done.";
const seconds = (since_ms: number) => ((performance.now() - since_ms) / 1000).toFixed(1);

test.each([
  ["claude", ["-p", "Say hello."]],
  ["codex", ["exec", "--skip-git-repo-check", "Say hello."]],
  ["opencode", ["run", "Say hello."]],
] as const)("%s answers after two steps from nothing", async (name, words) => {
  using place = desk();
  engine.play(() => ({ text: answer }));
  const began_ms = performance.now();
  expect((await place.home.signIn(node)).code).toBe(0);
  const login_s = seconds(began_ms);
  const first_ms = performance.now();
  const run = await runToEnd([join(place.home.folder, "bin/sluice"), name, ...words], {
    cwd: place.home.folder,
    env: { ...place.home.env, SLUICE_MODEL: model },
    limit_ms: 120_000,
  });
  console.log(`${name}: 2 steps; sluice login ${login_s} s, sluice ${name} ${seconds(first_ms)} s`);
  expect(run).toMatchObject({ code: 0, out: expect.stringContaining(answer) });
});

/** Replaces the access token in the sign-in file by an invalid one. */
const spoil = (file: string) => {
  const signIn = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...signIn, access_token: "slt_0000000000000000000000000000000003Pk4UO" }));
};

test("Codex runs its command once, and again after a 401 in the middle of its work", async () => {
  using place = desk();
  expect((await place.home.signIn(node)).code).toBe(0);
  const file = place.home.signInFile(node.serviceUrl);
  const ran = join(place.home.folder, "ran");
  const sluice = join(place.home.folder, "counted");
  writeFileSync(sluice, `#!/bin/sh\necho run >>'${ran}'\nexec sluice "$@"\n`, { mode: 0o755 });
  const runs = () => readFileSync(ran, "utf8").trim().split("\n").length;
  const first = JSON.parse(readFileSync(file, "utf8")).access_token as string;
  let runsBefore = 0;
  let turn = 0;
  engine.play(() => {
    turn += 1;
    if (turn > 1) return { text: answer };
    runsBefore = runs();
    return { calls: [{ name: "exec_command", arguments: { cmd: "echo working" } }] };
  });
  // The first token is accepted for one POST only, as if it expired after that.
  let posts = 0;
  const watch = watched({
    url: node.serviceUrl,
    instead(asked) {
      if (asked.method !== "POST") return;
      posts += 1;
      const isDead = posts > 1 && asked.headers.get("authorization") === `Bearer ${first}`;
      if (!isDead) return;
      spoil(file);
      return Response.json({ error: { message: "This key has ended.", code: "expired_api_key" } }, { status: 401 });
    },
  });
  try {
    const codexHome = join(place.home.folder, "codex");
    mkdirSync(codexHome);
    writeFileSync(
      join(codexHome, "config.toml"),
      `model = "${model}"
model_provider = "sluice"
check_for_update_on_startup = false
[features]
plugins = false
[analytics]
enabled = false
[model_providers.sluice]
name = "Sluice"
base_url = "${watch.url}/v1"
wire_api = "responses"
auth = { command = "${sluice}", args = ["token"] }
`,
    );
    const words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Do the work."];
    const done = await runToEnd([join(place.home.folder, "bin/codex"), ...words], {
      cwd: place.home.folder,
      env: { ...place.home.env, CODEX_HOME: codexHome },
      limit_ms: 90_000,
    });
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining(answer) });
    const statuses = watch.asked.filter(({ method }) => method === "POST").map(({ status }) => status);
    expect(statuses).toEqual([200, 401, 200]);
    expect([runsBefore, runs()]).toEqual([1, 2]);
    const last = watch.asked.at(-1)?.headers.get("authorization");
    expect(last).toStartWith("Bearer slt_");
    expect(last).not.toBe(`Bearer ${first}`);
  } finally {
    watch.stop();
  }
});
