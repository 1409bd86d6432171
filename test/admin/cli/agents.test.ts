// Tests of `sluice claude`, `codex` and `opencode` with fake programs in place of the agents. These print the arguments
// and environment variables that they got; test/clients runs the real agents.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Laptop, laptop } from "../../harness/laptop.ts";
import { program, type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

let sluice: Sluice;
let home: Laptop;
let firstModel: string;
beforeAll(async () => {
  sluice = await startSluice();
  const bare = laptop();
  const folder = join(bare.folder, "bin");
  mkdirSync(folder);
  home = bare.with({ PATH: `${folder}:${bare.env.PATH}`, ANTHROPIC_API_KEY: "sk-of-the-user", KEPT: "as it was" });
  for (const name of ["claude", "codex", "opencode"]) fake(name, `printf '%s\\n' "$@"; echo "== env"; env; exit 7`);
  const { models } = (await (await sluice.fetch("/v1/models?client_version=1")).json()) as {
    models: { slug: string }[];
  };
  firstModel = models[0]!.slug;
});
afterAll(async () => {
  home?.[Symbol.dispose]();
  await sluice?.stop();
});

function fake(name: string, script: string): void {
  const path = join(home.folder, "bin", name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

/** Runs a command, and returns the arguments and the environment that it passed to the agent. */
async function given(...words: string[]) {
  const { code, stdout, stderr } = await home.run(...words);
  const [typed = "", variables = ""] = stdout.split("\n== env\n");
  const env = Object.fromEntries(
    variables.split("\n").map((line) => [line.split("=")[0]!, line.slice(line.indexOf("=") + 1)]),
  );
  return { code, stderr, words: typed.split("\n"), env: env as Record<string, string | undefined> };
}

const withKey = () => home.with({ SLUICE_KEY: sluice.key }).run("login", sluice.url, "--key");
/**
 * Writes the file that a person's sign-in creates. With it, an agent gets its token not from the environment, but from
 * a command that it runs.
 */
async function asPerson(): Promise<void> {
  await withKey();
  const hour_ms = Date.now() + 3_600_000;
  const tokens = { kind: "person", email: null, access_token: sluice.key, refresh_token: null };
  writeFileSync(home.signInFile(sluice.url), JSON.stringify({ ...tokens, renew_at_ms: hour_ms, ends_at_ms: hour_ms }));
}

test("a key reaches each agent by its environment alone, and a person's token by a command", async () => {
  await withKey();
  const claude = await given("claude", "-p", "hi");
  expect(claude).toMatchObject({ code: 7, stderr: "", words: ["-p", "hi"] });
  expect(claude.env).toMatchObject({ ANTHROPIC_BASE_URL: sluice.url, ANTHROPIC_AUTH_TOKEN: sluice.key });
  expect(claude.env).toMatchObject({ ANTHROPIC_MODEL: firstModel, KEPT: "as it was" });
  expect(claude.env.CLAUDE_CODE_MAX_CONTEXT_TOKENS).toMatch(/^\d+$/);
  expect(claude.env.ANTHROPIC_API_KEY).toBeUndefined();
  const codex = await given("codex", "exec", "hi");
  expect(codex.words.slice(-2)).toEqual(["exec", "hi"]);
  expect(codex.words.join("\n")).toContain(`base_url = "${sluice.url}/v1"`);
  expect(codex.env.SLUICE_KEY).toBe(sluice.key);
  const opencode = await given("opencode");
  const { provider, model } = JSON.parse(opencode.env.OPENCODE_CONFIG_CONTENT!);
  expect(model).toBe(`sluice/${firstModel}`);
  expect(provider.sluice.options).toEqual({ baseURL: `${sluice.url}/v1`, apiKey: "{env:SLUICE_TOKEN}" });
  expect(opencode.env.SLUICE_TOKEN).toBe(sluice.key);

  await asPerson();
  const signedIn = [await given("claude", "-p", "hi"), await given("codex", "exec", "hi")];
  for (const { code, words, env } of signedIn) {
    expect(code).toBe(7);
    expect(words.join(" ")).toContain("token");
    expect(JSON.stringify([words, env])).not.toContain(sluice.key);
  }
  const { apiKeyHelper } = JSON.parse(signedIn[0]!.words[1]!);
  const shell = Bun.spawnSync(["sh", "-c", apiKeyHelper], { env: home.env });
  expect(shell.stdout.toString()).toBe(`${sluice.key}\n`);
});

test("what follows our own options is the agent's, options too", async () => {
  await withKey();
  const all = ["--model", "vendor/other", "--help", "--at", "-x", "", "two words", "--server", "--", "-h"];
  const { words, env } = await given("claude", "--at", sluice.url, ...all);
  expect(words).toEqual(all);
  expect(env.ANTHROPIC_MODEL).toBe("vendor/other");
  expect((await given("claude", "--", "--help")).words).toEqual(["--help"]);
  expect((await home.run("claude", "--help")).stdout).toContain("start Claude Code");
});

test("the model is the one that was typed, else that of SLUICE_MODEL, else the first with tools", async () => {
  await withKey();
  const other = "qwen/qwen3-coder";
  const from = home.with({ SLUICE_MODEL: other });
  expect((await from.run("claude")).stdout).toContain(`ANTHROPIC_MODEL=${other}\n`);
  expect((await from.run("codex", "-m", firstModel)).stdout).toContain(`model="${firstModel}"`);
  expect((await home.run("opencode", `--model=sluice/${other}`)).stdout).toContain(`"model":"sluice/${other}"`);
});

test("no file is changed or made", async () => {
  await withKey();
  const files = () => readdirSync(home.folder, { recursive: true }).map(String).sort();
  const before = files();
  const kept = readFileSync(home.signInFile(sluice.url), "utf8");
  for (const name of ["claude", "codex", "opencode"]) await home.run(name);
  expect(files()).toEqual(before);
  expect(readFileSync(home.signInFile(sluice.url), "utf8")).toBe(kept);
});

test("signals go to the agent, and its end is ours: a code, or that of a signal", async () => {
  await withKey();
  const started = join(home.folder, "started");
  for (const [script, signal, code] of [
    [`trap 'exit 9' TERM; touch ${started}; while :; do sleep 0.05; done`, "SIGTERM", 9],
    [`trap 'exit 8' INT; touch ${started}; while :; do sleep 0.05; done`, "SIGINT", 8],
    [`touch ${started}; exec sleep 60`, "SIGHUP", 129],
  ] as const) {
    fake("codex", script);
    const child = Bun.spawn([...program, "codex"], {
      cwd: home.folder,
      env: home.env,
      stdout: "ignore",
      stderr: "ignore",
    });
    await until(() => existsSync(started), 10_000, "the agent to start");
    child.kill(signal);
    expect([signal, await child.exited]).toEqual([signal, code]);
    await Bun.file(started).delete();
  }
});

test("an agent that is not installed, a sign-in that is missing, and a key that ended are said", async () => {
  await withKey();
  const bare = home.with({ PATH: "/nowhere" });
  const missing = await bare.run("opencode");
  expect([missing.code, missing.stderr]).toEqual([
    1,
    "sluice: opencode is not installed: there is no 'opencode' in PATH. Install it: npm install -g opencode-ai\n",
  ]);
  expect((await home.run("claude", "--at", "https://other.example")).stderr).toBe(
    "sluice: You are not signed in at https://other.example. Run: sluice login https://other.example\n",
  );
  const [{ id } = { id: "" }] = await sluice.json<{ id: string }[]>("key", "list");
  const { key } = await sluice.json<{ key: string }>("key", "rotate", id, "--grace", "0s");
  const ended = await home.run("claude");
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("rotated")]);
  await home.with({ SLUICE_KEY: key }).run("login", sluice.url, "--key");
  expect((await home.run("claude")).code).toBe(7);
});
