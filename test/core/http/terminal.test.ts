/**
 * A service that was started at a terminal ends with the terminal, as programs do; a SIGHUP without that is a reload.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, says } from "../../harness/engine.ts";
import { program } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

/** Starts the demonstration with its input and output at a terminal, and its log in a file. */
async function startAtTerminal(environment: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-terminal-"));
  const log = join(folder, "log");
  let shown = "";
  const child = Bun.spawn(["sh", "-c", 'log=$1; shift; exec "$@" 2>"$log"', "sh", log, ...program, "serve"], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      PORT: "0",
      SLUICE_DATA_DIR: join(folder, "data"),
      SLUICE_WARM_UP_MS: "0",
      ...environment,
    },
    terminal: {
      cols: 200,
      rows: 50,
      data(_, bytes) {
        shown += new TextDecoder().decode(bytes);
      },
    },
  });
  const logged = () => readFileSync(log, "utf8");
  await until(() => shown.includes(" serving on ") || child.exitCode !== null, 30_000, "the service to start");
  const url = / serving on (\S+)/.exec(shown)?.[1];
  if (!url) throw new Error(`the service did not start: ${shown}${logged()}`);
  const key = /slk_\w+/.exec(shown)?.[0] ?? readFileSync(join(folder, "data/demo-key"), "utf8").trim();
  return {
    child,
    shown,
    logged,
    stream: () =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "qwen/qwen3-32b", messages: says("tps=50 tokens=100"), stream: true }),
      }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test("a reload leaves it there; a terminal that is closed drains it, and the running stream is whole", async () => {
  await using service = await startAtTerminal();
  service.child.kill("SIGHUP");
  await until(() => service.logged().includes("configuration_reloaded"), 5_000, "the reload");
  const begun = await service.stream();
  service.child.terminal!.close();
  await until(() => service.logged().includes('"event":"draining"'), 5_000, "the drain");
  expect((await eventsOf(begun)).at(-1)).toBe("[DONE]");
  expect(await service.child.exited).toBe(0);
  expect(service.logged()).toContain('"signal":"SIGHUP"');
}, 60_000);

test("the terminal of a container, which goes into a log, shows neither a key nor a link to the console", async () => {
  await using service = await startAtTerminal({ KUBERNETES_SERVICE_HOST: "10.0.0.1" });
  expect(service.shown).not.toMatch(/slk_|#link=/);
}, 60_000);
