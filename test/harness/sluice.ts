// A running Sluice to test over real sockets: a process of its own, from source or of the binary that TEST_SLUICE
// names, on Postgres, or on PGlite if TEST_STORE=pglite. Every response to `fetch` is checked against the contract, and
// at the end all bytes that were sent or logged are searched for secrets.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Terminal } from "../../src/admin/cli/terminal.ts";
import { contractProblems } from "./contract.ts";
import { migratedDatabase } from "./migrated-database.ts";
import { shortLived } from "./short-lived.ts";
import { until } from "./until.ts";

export interface SluiceOptions {
  /** The text of sluice.yaml; by default a catalog whose models the simulator serves. */
  config?: string;
  env?: Record<string, string>;
  /** The certificate that `fetch` trusts, in PEM format. */
  ca?: string;
  /** Strings that must not appear in any response or log line: addresses, engines' model IDs, keys. */
  secrets?: string[];
  /** Strings that may appear in the log, which operators read, but in no response: upstreams' names. */
  operatorsWords?: string[];
  /** An existing data folder, for a node that starts with the data of an earlier node. */
  dataDir?: string;
  store?: "pglite" | "postgres";
  /** The maximum number of open file descriptors of the process. */
  descriptors?: number;
}

export interface Sluice {
  url: string;
  /**
   * A key with all scopes. Its organization is the demo organization, on the plan `pro`, or on Postgres one that was
   * created for the test, on the plan `unlimited`.
   */
  key: string;
  /** The slug of the key's organization. */
  organization: string;
  dataDir: string;
  store: "pglite" | "postgres";
  /**
   * Sends a request with the service's `key`, unless another `key` (null: none) or an `authorization` header is given.
   * Checks the response against the contract.
   */
  fetch(path: string, init?: RequestInit & { key?: string | null }): Promise<Response>;
  /** Sends a JSON body by POST. */
  post(path: string, body: unknown, init?: RequestInit & { key?: string | null }): Promise<Response>;
  cli(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /**
   * Runs a command with --json within this process, which is faster than a process of its own, and returns the parsed
   * output. Throws when the command fails.
   */
  json<T>(...words: string[]): Promise<T>;
  stdout(): string;
  stderr(): string;
  pid: number;
  signal(signal: NodeJS.Signals): void;
  exited: Promise<number>;
  /**
   * Sends SIGTERM, waits for the end of the process, and then searches everything that was sent and logged for secrets.
   * Returns the exit code.
   */
  stop(): Promise<number>;
}

const start_ms = 30_000;
const root = join(import.meta.dir, "../..");

export const program = process.env.TEST_SLUICE
  ? [process.env.TEST_SLUICE]
  : [process.execPath, join(root, "src/main.ts")];
/** The database of most tests. A node on Postgres starts with a third of the CPU time that a node on PGlite needs. */
export const standardStore = process.env.TEST_STORE === "pglite" ? "pglite" : "postgres";

export async function startSluice(options: SluiceOptions = {}): Promise<Sluice> {
  const store = options.store ?? standardStore;
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-"));
  const dataDir = options.dataDir ?? join(folder, "data");
  const database = store === "postgres" ? await migratedDatabase() : null;
  const isDemonstration = store === "pglite" && (options.config ?? options.env?.SLUICE_CONFIG) === undefined;
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? "",
    HOME: folder,
    PORT: "0",
    SLUICE_DATA_DIR: dataDir,
    // The warm-up is off: a run starts hundreds of nodes, and each warm-up would use a second of CPU time. Other values
    // are set by test/core/http/warm-up.test.ts.
    SLUICE_WARM_UP_MS: "0",
    ...shortLived,
    ...(database ? { DATABASE_URL: database.url } : {}),
    ...options.env,
  };
  if (options.config !== undefined) {
    writeFileSync(join(folder, "sluice.yaml"), options.config);
    env.SLUICE_CONFIG = join(folder, "sluice.yaml");
  }

  const words = [...(options.descriptors ? limited(options.descriptors) : []), ...program, "serve"];
  const child = Bun.spawn(words, { cwd: folder, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const out = gathered(child.stdout);
  const err = gathered(child.stderr);
  const cli = async (...words: string[]) => {
    const run = Bun.spawn([...program, ...words], {
      cwd: folder,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
    return { code, stdout, stderr };
  };
  const json = jsonCommands(env);

  const cleanUp = async () => {
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  };
  let url: string;
  let key: string;
  try {
    await until(
      () => / serving on \S+\n/.test(out.text()) || child.exitCode !== null,
      start_ms,
      "the service to start",
    );
    url = / serving on (\S+)\n/.exec(out.text())?.[1] ?? "";
    if (!url) throw new Error(`the service did not start: ${err.text()}`);
    // A command that does not accept the database's schema prints no list.
    const organizations = async () => (await cli("org", "list", "--json")).stdout;
    const isNew = async () => !options.dataDir || (await organizations()).trim() === "[]";
    key =
      demoKey(out.text()) ?? ((await isNew()) ? await createdKey(json, store === "pglite" ? "pro" : "unlimited") : "");
  } catch (failure) {
    child.kill("SIGKILL");
    await cleanUp();
    throw failure;
  }

  const seen: string[] = [];
  const visit = async (path: string, init: RequestInit & { key?: string | null } = {}) => {
    const headers = new Headers(init.headers);
    const sent = init.key === undefined ? key : init.key;
    if (sent !== null && !headers.has("authorization") && !headers.has("x-api-key"))
      headers.set("authorization", `Bearer ${sent}`);
    const response = await fetch(url + path, { ...init, headers, ...(options.ca ? { tls: { ca: options.ca } } : {}) });
    const copy = response.clone();
    checks.push(
      (async () => {
        const text = await copy.text().catch(() => "");
        seen.push(JSON.stringify([...copy.headers]), text);
        return contractProblems(init.method ?? "GET", path, copy, text);
      })(),
    );
    return response;
  };
  const checks: Promise<string[]>[] = [];

  return {
    url,
    key,
    organization: isDemonstration ? "demo" : "test",
    dataDir,
    store,
    fetch: visit,
    post: (path, body, init = {}) =>
      visit(path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
        headers: { "content-type": "application/json", ...(init.headers as Record<string, string>) },
      }),
    cli,
    json,
    stdout: out.text,
    stderr: err.text,
    pid: child.pid,
    signal: (signal) => child.kill(signal),
    exited: child.exited,
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 40_000);
      const code = await child.exited;
      clearTimeout(timer);
      await Promise.all([out.ended, err.ended]);
      if (!options.dataDir) await cleanUp();
      const problems = (await Promise.all(checks)).flat();
      const everything = [...seen, out.text(), err.text()].join("\n");
      for (const secret of [key, ...(options.secrets ?? [])]) {
        if (secret && everything.includes(secret)) problems.push(`'${secret}' showed: ${around(everything, secret)}`);
      }
      const sent = [...seen, out.text()].join("\n");
      for (const word of options.operatorsWords ?? []) {
        if (sent.includes(word)) problems.push(`'${word}' showed: ${around(sent, word)}`);
      }
      if (problems.length > 0) throw new Error([...new Set(problems)].slice(0, 20).join("\n"));
      return code;
    },
  };
}

/**
 * Reads the key from the file that a node names at its first start. Returns null if the node had an organization
 * already.
 */
function demoKey(said: string): string | null {
  const file = /^ {2}(\S.*\/demo-key)$/m.exec(said)?.[1];
  return file ? readFileSync(file, "utf8").trim() : null;
}

const limited = (descriptors: number) => ["sh", "-c", `ulimit -n ${descriptors} && exec "$0" "$@"`];

async function createdKey(json: <T>(...words: string[]) => Promise<T>, plan: string): Promise<string> {
  await json("org", "create", "test", "--plan", plan);
  return (await json<{ key: string }>("key", "create", "--org", "test", "--name", "test")).key;
}

/** Runs commands in this process, with `--json`. Files that they name need absolute paths. */
export function jsonCommands(env: Record<string, string>): Sluice["json"] {
  let loading: Promise<(words: string[], terminal: Terminal) => Promise<number>> | null = null;
  return async <T>(...words: string[]) => {
    loading ??= loadedCommands(env);
    const typed = await loading;
    const out: string[] = [];
    const err: string[] = [];
    const code = await typed([...words, "--json"], {
      out: (text) => void out.push(text),
      err: (text) => void err.push(text),
      width: null,
      color: false,
      interactive: false,
    });
    if (code !== 0) throw new Error(`sluice ${words.join(" ")} answered ${code}: ${err.join("")}`);
    return JSON.parse(out.join("")) as T;
  };
}

/** Loads the code of the commands when the first command is run, because many tests run none. */
async function loadedCommands(env: Record<string, string>) {
  const [{ run }, { services }] = await Promise.all([
    import("../../src/admin/cli/run.ts"),
    import("../../src/node/services.ts"),
  ]);
  const given = services(env);
  return (words: string[], terminal: Terminal) => run(words, { ...given, terminal });
}

function around(text: string, word: string): string {
  const at = text.indexOf(word);
  return text.slice(Math.max(0, at - 100), at + word.length + 100);
}

/** The text that a stream has sent so far, and a promise for its end. */
export function gathered(stream: ReadableStream<Uint8Array>): { text: () => string; ended: Promise<void> } {
  let text = "";
  const decoder = new TextDecoder();
  const ended = (async () => {
    for await (const chunk of stream) text += decoder.decode(chunk, { stream: true });
  })();
  return { text: () => text, ended };
}
