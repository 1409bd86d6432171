/**
 * The administrator's door to a running server: a Unix socket in the data folder that only its owner can open. The
 * embedded database admits one process, so the CLI asks the server that holds it. Small JSON over HTTP: a verb and its
 * argument in, its result or refusal out. Whoever can open the socket may do everything: the file system is the guard.
 */
import { chmodSync, lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Management, managementVerbs } from "../auth/administration.ts";
import { Refusal } from "../auth/refusal.ts";
import { pack, unpack } from "./wire.ts";

/** Changes when a verb changes its meaning: a CLI and a server of different builds then say so. */
const protocol_version = 1;
const body_bytes_max = 64 * 1024;
const call_ms = 30_000;
const probe_ms = 2000;
const address = "http://sluice/";
const actorForm = /^cli:[\w.@+-]{1,64}$/;

type Reply = { version: number } & ({ result: unknown } | { refusal: string } | { failure: string });

function placeOf(dataDir: string): { folder: string; path: string } {
  const folder = join(resolve(dataDir), "admin");
  return { folder, path: join(folder, "sluice.sock") };
}

/**
 * Opens the door in this data folder. The folder around the socket admits its owner alone before the socket exists, so
 * there is no moment at which another user could slip in. Throws Error when another server has the door open, when the
 * folder belongs to someone else, or when the system finds the path too long.
 */
export async function adminSocket(options: {
  dataDir: string;
  /** The verbs, done in this actor's name. */
  manageAs: (actor: string) => Management;
  /** Hears of outages; the caller is told as well. */
  failed?: (cause: unknown) => void;
}): Promise<{ path: string; stop(): Promise<void> }> {
  const { folder, path } = placeOf(options.dataDir);
  ownFolder(folder);
  if (isSocket(path)) {
    if (await isLive(path)) throw new Error(`another sluice already serves the data folder ${options.dataDir}`);
    unlinkSync(path);
  }
  const server = listen(path, (request) => {
    server.timeout(request, call_ms / 1000);
    return answer(request, options);
  });
  chmodSync(path, 0o600);
  return { path, stop: () => server.stop() };
}

/**
 * The same verbs through the door of a running server; null when none is running there. Throws Refusal when there is one
 * that this user may not ask, or of another build.
 */
export async function socketManagement(options: { dataDir: string; actor: string }): Promise<Management | null> {
  const { path } = placeOf(options.dataDir);
  if (!isSocket(path) || !(await isLive(path))) return null;
  const verbs = managementVerbs.map((verb) => [verb, (input: unknown) => call(path, options.actor, verb, input)]);
  return Object.fromEntries(verbs) as unknown as Management;
}

function ownFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  const user = process.getuid?.();
  if (!found.isDirectory() || (user !== undefined && found.uid !== user)) {
    throw new Error(`${folder} is not a folder of this user's own: remove it, or choose another SLUICE_DATA_DIR`);
  }
  chmodSync(folder, 0o700);
}

function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch (cause) {
    if (codeOf(cause) === "EACCES" || codeOf(cause) === "EPERM") throw notYours(path);
    return false;
  }
}

function listen(path: string, fetch: (request: Request) => Promise<Response>): Bun.Server<undefined> {
  try {
    return Bun.serve({ unix: path, maxRequestBodySize: body_bytes_max, fetch });
  } catch (cause) {
    if (codeOf(cause) !== "ENAMETOOLONG") throw cause;
    throw new Error(`the data folder's path is too long for a socket: choose a shorter SLUICE_DATA_DIR`, { cause });
  }
}

async function answer(
  request: Request,
  { manageAs, failed }: { manageAs: (actor: string) => Management; failed?: (cause: unknown) => void },
): Promise<Response> {
  if (request.method !== "POST") return reply(200, { result: null });
  const asked = await commandIn(request);
  if (typeof asked === "string") return reply(400, { failure: asked });
  try {
    const manage = manageAs(asked.actor);
    const result = await (manage[asked.verb] as (input: unknown) => Promise<unknown>)(asked.argument);
    return reply(200, { result: pack(result) });
  } catch (cause) {
    if (cause instanceof Refusal) return reply(422, { refusal: cause.message });
    failed?.(cause);
    return reply(500, { failure: cause instanceof Error ? cause.message : String(cause) });
  }
}

/** The command in a request, or why there is none. */
async function commandIn(
  request: Request,
): Promise<{ actor: string; verb: keyof Management; argument: unknown } | string> {
  let body: unknown;
  try {
    body = unpack(await request.json());
  } catch {
    return "the body is not JSON of an acceptable depth";
  }
  if (typeof body !== "object" || body === null) return "the body is not an object";
  const { version, actor, verb, argument } = body as Record<string, unknown>;
  if (version !== protocol_version) return otherBuild;
  const known = managementVerbs.find((one) => one === verb);
  if (!known) return "there is no such verb";
  if (typeof actor !== "string" || !actorForm.test(actor)) return "the actor is malformed";
  if (typeof argument !== "object" || argument === null) return "the argument is not an object";
  return { actor, verb: known, argument };
}

function reply(status: number, content: { result: unknown } | { refusal: string } | { failure: string }): Response {
  return Response.json({ version: protocol_version, ...content } satisfies Reply, { status });
}

/** Whether somebody listens; a socket that a killed server left behind has nobody. */
async function isLive(path: string): Promise<boolean> {
  try {
    const { version } = await exchange(path, { method: "GET" }, probe_ms);
    if (version !== protocol_version) throw new Refusal(otherBuild);
    return true;
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    const code = codeOf(cause);
    if (code === "EACCES" || code === "EPERM") throw notYours(path);
    if (code === "ECONNREFUSED" || code === "ENOENT" || code === "FailedToOpenSocket") return false;
    throw new Refusal(`A server holds ${path} but does not answer. Look at its log, or restart it.`);
  }
}

async function call(path: string, actor: string, verb: string, argument: unknown): Promise<unknown> {
  const body = JSON.stringify({ version: protocol_version, actor, verb, argument: pack(argument ?? {}) });
  const answered = await exchange(path, { method: "POST", body }, call_ms);
  if ("refusal" in answered) throw new Refusal(answered.refusal);
  if ("failure" in answered) throw new Error(`the running server could not do it: ${answered.failure}`);
  return unpack(answered.result);
}

async function exchange(path: string, init: BunFetchRequestInit, wait_ms: number): Promise<Reply> {
  const response = await fetch(address, {
    ...init,
    unix: path,
    keepalive: false,
    signal: AbortSignal.timeout(wait_ms),
  });
  return (await response.json()) as Reply;
}

const otherBuild = "The running server is another version of sluice than this command. Use the same for both.";

function notYours(path: string): Refusal {
  return new Refusal(`${path} belongs to another user. Run this command as the user that runs the server.`);
}

function codeOf(cause: unknown): string | null {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : null;
}
