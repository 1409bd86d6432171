// A reader who runs a page's commands: in a clone of the repository, with a node, a key and an engine of their own.

import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { defaultModels } from "../../src/config/models.ts";
import { freePort } from "../harness/daemon.ts";
import { shortLived } from "../harness/short-lived.ts";
import { startSimulator } from "../harness/simulator.ts";
import { gathered, program } from "../harness/sluice.ts";
import { strictEngine } from "../harness/strict-engine.ts";
import { until } from "../harness/until.ts";

export interface Reader extends AsyncDisposable {
  folder: string;
  url: string;
  /** The environment variables of the reader's terminal. */
  env: Record<string, string>;
  /** Replacements of values on the page by this reader's values. */
  values: [from: string | RegExp, to: string][];
  /** Functions that are called at the end, when no process runs any more. */
  ends: (() => unknown)[];
  /**
   * Runs the command, and returns its output. If the command starts a service, the service keeps running, and the
   * previous service is stopped.
   */
  types(command: string): Promise<string>;
  json<T>(words: string): Promise<T>;
  stops(): Promise<void>;
}

const start_ms = 60_000;
const stop_ms = 30_000;
const copied = ["src", "scripts", "console", "db", "deploy", "package.json", "bun.lock", "bunfig.toml"];
const isService = (command: string) => /\bnpm start\b|\bsluice serve\b/.test(command);
const goesOn = (command: string) => /--watch\b/.test(command);

export async function startReader(): Promise<Reader> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-reader-"));
  for (const name of copied) cpSync(name, join(folder, name), { recursive: true });
  for (const name of ["node_modules", ".cache"]) symlinkSync(resolve(name), join(folder, name));
  for (const path of ["bin/sluice", "dist/sluice"]) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), `#!/bin/sh\nexec ${program.map((word) => `"${word}"`).join(" ")} "$@"\n`);
    chmodSync(join(folder, path), 0o755);
  }
  const engine = await startSimulator();
  const vllm = strictEngine(engine.url);
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  let service: ReturnType<typeof spawned> | null = null;
  const exports: string[] = [];

  function spawned(command: string) {
    const words = ["sh", "-ec", [...exports, command].join("\n")];
    const { env } = reader;
    return Bun.spawn(words, { cwd: folder, env, stdin: "ignore", stdout: "pipe", stderr: "pipe", detached: true });
  }

  const reader: Reader = {
    folder,
    url,
    env: {
      PATH: `${join(folder, "bin")}:${process.env.PATH}`,
      HOME: folder,
      PORT: port,
      SLUICE_WARM_UP_MS: "0",
      ...shortLived,
      NO_PROXY: "*",
    },
    values: [
      ["http://localhost:8080", url],
      ["SLUICE_UPSTREAM_KEY=…", "SLUICE_UPSTREAM_KEY=engine-key"],
      [/http:\/\/(localhost|127\.0\.0\.1):8000(\/v1)?/g, vllm.url],
      [/http:\/\/(localhost|127\.0\.0\.1):(11434|8090)(\/v1)?/g, engine.url],
    ],
    ends: [],
    async types(command) {
      const typed = reader.values.reduce((text, [from, to]) => text.replaceAll(from, to), command);
      if (typed.includes("…")) throw new Error(`nothing stands for … in: ${typed}`);
      if (typed.startsWith("export ")) exports.push(typed);
      if (isService(typed)) await reader.stops();
      const child = spawned(typed);
      const printed = gathered(child.stdout);
      const complained = gathered(child.stderr);
      const lasts = isService(typed) || goesOn(typed);
      const shown = () => (isService(typed) ? / serving on \S+\n/.test(printed.text()) : printed.text() !== "");
      if (lasts) await until(() => shown() || child.exitCode !== null, start_ms, `output of ${typed}`);
      if (isService(typed) && child.exitCode === null) service = child;
      else if (goesOn(typed)) process.kill(-child.pid, "SIGINT");
      if (service === child) return printed.text();
      const code = await child.exited;
      await Promise.all([printed.ended, complained.ended]);
      if (code !== 0 && !(goesOn(typed) && shown()))
        throw new Error(`${typed} ended with ${code}:\n${printed.text()}${complained.text()}`);
      return printed.text();
    },
    json: async (words) => JSON.parse(await reader.types(`sluice ${words} --json`)),
    async stops() {
      if (service === null) return;
      const group = -service.pid;
      process.kill(group, "SIGTERM");
      await service.exited;
      // The shell may end before the node that it started, and the node still uses the data folder.
      await until(() => isGone(group), stop_ms, "the node to stop");
      service = null;
    },
    async [Symbol.asyncDispose]() {
      await reader.stops();
      for (const end of reader.ends) await end();
      await vllm.server.stop(true);
      await engine.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return reader;
}

/**
 * Sends a request to the service for the model that the first start prints, with the demo organization's key. Returns
 * the status.
 */
export async function asksDemo(reader: Reader): Promise<number> {
  const response = await fetch(`${reader.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${demoKey(reader)}`, "content-type": "application/json" },
    body: JSON.stringify({ model: defaultModels()[0]!.id, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
  return response.status;
}

/** The key that a node's first start wrote to a file. */
export function demoKey({ folder }: Reader): string {
  return readFileSync(join(folder, "data/demo-key"), "utf8").trim();
}

function isGone(group: number): boolean {
  try {
    process.kill(group, 0);
    return false;
  } catch {
    return true;
  }
}
