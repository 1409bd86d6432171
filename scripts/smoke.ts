// `npm run smoke`: tests whether the compiled binary works. Runs it in an empty folder, without this repository: a
// first start, the first requests of a client and an operator, a shutdown, and a second start on the same data.
// - `-- WORDS`: runs this command instead of dist/sluice.
// - `--patience N`: multiplies the time limits by N.
// - `--once`: starts the command only once, and then signals its whole process group, as a terminal does: npx neither
//   passes SIGTERM on nor waits for the program that it started.

import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Counts, close } from "./counts.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { patience: { type: "string", default: "1" }, once: { type: "boolean", default: false } },
});
const patience = Number(values.patience);
const start_ms = 30_000 * patience;
const answer_ms = 10_000 * patience;
const end_ms = 20_000 * patience;

interface Server {
  url: string;
  key: string | null;
  took_ms: number;
  stop(signal: NodeJS.Signals): Promise<number>;
}

const program = positionals.length > 0 ? positionals : [resolve("dist/sluice")];
const counts: Counts = { passed: 0, failed: 0, skipped: 0 };

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-smoke-"));
  let server: Server | null = null;
  try {
    server = await first(folder);
    if (server !== null) await (values.once ? ended(server) : again(folder, server));
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await close(counts);
  }
}

async function first(folder: string): Promise<Server | null> {
  const server = await check("the first start, on an empty folder", () => start(folder));
  if (server === null) return null;
  console.log(`       serving after ${Math.round(server.took_ms)} ms`);
  const { url, key } = server;
  await check("/livez", () => answers(`${url}/livez`));
  await check("/readyz", () => answers(`${url}/readyz`));
  await check("/openapi.json", () => answers(`${url}/openapi.json`));
  await check("healthcheck", () => runs(folder, ["healthcheck", "--url", url]));
  await check("--version, with commit and schema", async () => {
    const said = await runs(folder, ["--version"]);
    must(/^\d+\.\d+\.\d+(\+[\da-f]{12}(\.changed)?)? \(schema \d{4}_\w+\)\n$/.test(said), `it says ${said}`);
  });
  await check("the command line, while the server runs", () => runs(folder, ["org", "list", "--json"]));
  await check("a demo key is in the file that the first start names", () => must(key !== null, "no such file"));
  await check("an invalid key is refused", () => answers(`${url}/v1/models`, { headers: bearer("none") }, 401));
  const model = await check("the models", async () => {
    const { data } = (await (await answers(`${url}/v1/models`, { headers: bearer(key) })).json()) as {
      data: { id: string }[];
    };
    must(data.length > 0, "no model");
    return data[0]!.id;
  });
  await check("a chat", () => chat(url, key, model));
  await check("a stream", () => streamed(url, key, model));
  await check("a count, by a worker with the model's own tokenizer", () => counted(url, key));
  await check("its usage", () => answers(`${url}/v1/service/usage`, { headers: bearer(key) }));
  return server;
}

async function ended({ url, stop }: Server): Promise<void> {
  await check("SIGTERM ends it", async () => {
    await stop("SIGTERM");
    const deadline = performance.now() + end_ms;
    const serves = () => fetch(`${url}/livez`, { proxy: false as never }).then(Boolean, () => false);
    while (await serves()) {
      must(performance.now() < deadline, `it still serves ${end_ms} ms later`);
      await Bun.sleep(20);
    }
  });
}

async function again(folder: string, server: Server): Promise<void> {
  await check("SIGTERM ends it with 0", async () => {
    const code = await server.stop("SIGTERM");
    must(code === 0, `it ended with ${code}`);
  });
  const second = await check("a second start, on existing data", () => start(folder));
  if (second === null) return;
  console.log(`       serving after ${Math.round(second.took_ms)} ms`);
  await check("the key still works", () => answers(`${second.url}/v1/models`, { headers: bearer(server.key) }));
  await check("no second key is made", () => must(second.key === null, "a second key was told"));
  await check("SIGINT ends it with 0", async () => {
    const code = await second.stop("SIGINT");
    must(code === 0, `it ended with ${code}`);
  });
}

/** Runs a check. If it fails, prints and counts the failure, and returns null, so that the other checks continue. */
async function check<T>(name: string, work: () => T | Promise<T>): Promise<T | null> {
  try {
    const result = await work();
    counts.passed++;
    console.log(`(pass) ${name}`);
    return result;
  } catch (failure) {
    counts.failed++;
    console.log(`(fail) ${name}: ${failure instanceof Error ? failure.message : String(failure)}`);
    return null;
  }
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}

function environment(folder: string): Record<string, string> {
  return { PATH: process.env.PATH ?? "", HOME: folder, PORT: "0", SLUICE_DATA_DIR: join(folder, "data") };
}

async function start(folder: string): Promise<Server> {
  const began = performance.now();
  const child = Bun.spawn([...program, "serve"], {
    cwd: folder,
    env: environment(folder),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: values.once,
  });
  let said = "";
  let complained = "";
  const listened = Promise.all([
    listen(child.stdout, (text) => (said += text)),
    listen(child.stderr, (text) => (complained += text)),
  ]);
  while (!/serving on \S+\n/.test(said)) {
    const late = performance.now() - began > start_ms;
    if (late) child.kill("SIGKILL");
    if (late || child.exitCode !== null) {
      await child.exited;
      await listened;
      throw new Error(
        `${late ? `not serving after ${start_ms} ms` : `it ended with ${child.exitCode}`}: ${said}${complained}`,
      );
    }
    await Bun.sleep(2);
  }
  return {
    url: /serving on (\S+)\n/.exec(said)![1]!,
    key: keyFrom(/^ {2}(\S.*\/demo-key)$/m.exec(said)?.[1]),
    took_ms: performance.now() - began,
    async stop(signal) {
      if (values.once) process.kill(-child.pid, signal);
      else child.kill(signal);
      const limit = setTimeout(() => child.kill("SIGKILL"), end_ms);
      const code = await child.exited;
      clearTimeout(limit);
      return code;
    },
  };
}

async function listen(stream: ReadableStream<Uint8Array>, heard: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) heard(decoder.decode(chunk, { stream: true }));
}

async function answers(url: string, init: RequestInit = {}, status = 200): Promise<Response> {
  const response = await fetch(url, { ...init, proxy: false as never, signal: AbortSignal.timeout(answer_ms) });
  const told = response.status === status ? "" : (await response.text()).slice(0, 300);
  must(response.status === status, `${response.status} instead of ${status}: ${told}`);
  return response;
}

async function runs(folder: string, words: string[]): Promise<string> {
  const child = Bun.spawn([...program, ...words], {
    cwd: folder,
    env: environment(folder),
    stdout: "pipe",
    stderr: "pipe",
    timeout: answer_ms,
  });
  const [code, said, complained] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  must(code === 0, `${words.join(" ")} ended with ${code}: ${complained}`);
  return said;
}

/** Reads the key from its file, which only the owner may read. The program prints the file's path, but not the key. */
function keyFrom(file: string | undefined): string | null {
  if (file === undefined) return null;
  must((statSync(file).mode & 0o777) === 0o600, `${file} can be read by others`);
  return readFileSync(file, "utf8").trim();
}

function bearer(key: string | null): Record<string, string> {
  return { authorization: `Bearer ${key}`, "content-type": "application/json" };
}

function asked(key: string | null, model: string | null, stream: boolean): RequestInit {
  const messages = [{ role: "user", content: "Say hello." }];
  return { method: "POST", headers: bearer(key), body: JSON.stringify({ model, messages, stream, max_tokens: 20 }) };
}

async function chat(url: string, key: string | null, model: string | null): Promise<void> {
  const response = await answers(`${url}/v1/chat/completions`, asked(key, model, false));
  const answer = (await response.json()) as { choices: { message: { content: string } }[] };
  must((answer.choices[0]?.message.content ?? "") !== "", "an empty answer");
}

async function counted(url: string, key: string | null): Promise<void> {
  const body = JSON.stringify({ model: "openai/gpt-oss-20b", messages: [{ role: "user", content: "foo" }] });
  const request = { method: "POST", headers: bearer(key), body };
  const answer = (await (await answers(`${url}/v1/messages/count_tokens`, request)).json()) as { input_tokens: number };
  must(answer.input_tokens === 68, `it counted ${answer.input_tokens} tokens, not 68`);
}

async function streamed(url: string, key: string | null, model: string | null): Promise<void> {
  const text = await (await answers(`${url}/v1/chat/completions`, asked(key, model, true))).text();
  must(text.includes('"content":'), `no text in ${text.slice(0, 300)}`);
  must(text.endsWith("data: [DONE]\n\n"), `an end other than [DONE]: ${text.slice(-300)}`);
}

await main();
