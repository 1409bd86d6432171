/**
 * The management socket of a running server: a Unix socket in the data folder that only its owner can open. The
 * embedded database admits one process, so the CLI sends its verbs (management operations) to the server that holds it,
 * as JSON over HTTP. A request has the name and the input of a verb; the response has the verb's answer or a refusal.
 * Anybody who can open the socket has all rights: only file permissions protect it.
 */
import { chmodSync, lstatSync, mkdirSync, statSync, unlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ClientConnection } from "../../core/http/call.ts";
import type { Serve } from "../../core/http/frame.ts";
import { body_bytes_max } from "../http/gate.ts";
import { triedQuery } from "../http/try-model.ts";
import { client, type Transport } from "../management/client.ts";
import { ManagementError, refusalFrom } from "../management/error.ts";
import type { Verb } from "../management/verb.ts";
import { type Management, verbs } from "../management/verbs.ts";
import { codeOf, wait_ms } from "./calling.ts";
import type { AppliedMigration } from "./services.ts";
import { userNumbered } from "./user.ts";

/**
 * This number changes when the meaning of a verb changes, so that a CLI and a server of different versions notice the
 * difference.
 */
const protocol_version = 2;
const idle_ms = 30_000;
const probe_ms = 2000;
const answer_ms = 15 * 60_000;
/** How long a stop waits for answers: a check of the ledger would otherwise hold it up for half an hour. */
const stop_ms = 500;
const origin = "http://sluice";
const tryPath = "/try";
const actorHeader = "x-sluice-actor";
const actorForm = /^cli:[\w.@+-]{1,64}$/;

type Reply = { version: number } & ({ result: unknown } | { refusal: string; code?: string } | { failure: string });

function socketPath(dataDir: string): { folder: string; path: string } {
  const folder = join(resolve(dataDir), "admin");
  return { folder, path: join(folder, "sluice.sock") };
}

/**
 * Opens the socket in this data folder. The folder of the socket is closed to other users before the socket is created,
 * so no other user can connect in between. Throws an Error if another server has a socket here, if the folder belongs
 * to another user, or if the path is too long for the system.
 */
export async function adminSocket(options: {
  dataDir: string;
  /**
   * Makes the transport that calls verbs as this actor. The actor's name has two parts: the folder's owner, and the
   * name that the client claims.
   */
  actAs: (actor: string) => Transport;
  /** Makes the handler that tries models for this actor; absent: models cannot be tried through the socket. */
  tryAs?: (actor: string) => Serve;
  /** The migrations of the database, which a command of another version compares with its own. */
  migrations?: readonly AppliedMigration[];
  /** Called with each error other than a verb's refusal; the client gets the error as well. */
  failed?: (cause: unknown) => void;
}): Promise<{ path: string; stop(): Promise<void> }> {
  const { folder, path } = socketPath(options.dataDir);
  const owner = ownFolder(folder);
  if (isSocket(path)) {
    if (await isLive(path)) throw new Error(`another server already serves the data folder ${options.dataDir}`);
    unlinkSync(path);
  }
  const server = listen(path, (request) => {
    const { actAs, tryAs } = options;
    const isTry = tryAs && new URL(request.url).pathname === tryPath;
    // A verb has no time limit here: some verbs take many minutes, and the caller has a time limit of its own.
    server.timeout(request, isTry ? idle_ms / 1000 : 0);
    if (isTry) return tried(request, connectionOf(server, request), (claimed) => tryAs(actorOf(owner, claimed)));
    return answer(request, { ...options, actAs: (claimed) => actAs(actorOf(owner, claimed)) });
  });
  chmodSync(path, 0o600);
  return {
    path,
    async stop() {
      await Promise.race([server.stop(), Bun.sleep(stop_ms)]);
      await server.stop(true);
    },
  };
}

/**
 * The verbs through the socket of a running server; null if no server listens there. Throws a ManagementError if the
 * socket belongs to another user, or its server is another version.
 */
export async function socketManagement(options: SocketCaller): Promise<Management | null> {
  const path = await liveSocket(options.dataDir);
  return path === null ? null : client((verb, input) => call(path, options.actor, verb, input));
}

export interface SocketCaller {
  dataDir: string;
  actor: string;
}

/**
 * The migrations of the running server's database. Null if no server runs there, or one of a version that does not tell
 * them. Throws as socketManagement does.
 */
export async function socketMigrations({
  dataDir,
}: Pick<SocketCaller, "dataDir">): Promise<readonly AppliedMigration[] | null> {
  const path = await liveSocket(dataDir);
  if (path === null) return null;
  const { result } = (await exchange(path, { method: "GET" }, probe_ms)) as { result?: Told | null };
  return result?.migrations ?? null;
}

/** The answer of a server to everybody who asks whether it runs. */
interface Told {
  migrations?: readonly AppliedMigration[];
}

/**
 * Tries models through the running server: the returned function sends a request as this key, and returns the API's
 * response. Null if no server runs there. Throws as socketManagement does.
 */
export async function socketTry({
  dataDir,
  actor,
}: SocketCaller): Promise<((keyId: string, asked: string, body: string) => Promise<Response>) | null> {
  const path = await liveSocket(dataDir);
  if (path === null) return null;
  const headers = { [actorHeader]: actor, "content-type": "application/json" };
  return (keyId, asked, body) =>
    fetch(`${origin}${tryPath}?${triedQuery(keyId, asked)}`, {
      method: "POST",
      headers,
      body,
      unix: path,
      keepalive: false,
      signal: AbortSignal.timeout(answer_ms),
    });
}

async function liveSocket(dataDir: string): Promise<string | null> {
  const { folder, path } = socketPath(dataDir);
  if (!isSocket(path)) return null;
  assertOwn(resolve(dataDir), folder, path);
  return (await isLive(path)) ? path : null;
}

/** Makes the folder of the socket. Returns the name of the folder's owner. */
function ownFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  const user = process.getuid?.();
  if (!found.isDirectory() || (user !== undefined && found.uid !== user)) {
    throw new Error(`${folder} is not a folder that this user owns: remove it, or choose another SLUICE_DATA_DIR`);
  }
  chmodSync(folder, 0o700);
  return userNumbered(found.uid);
}

/**
 * The actor in the audit log. Only the folder's owner can open the socket, so the owner is certain. The name that the
 * client sends is only a claim.
 */
function actorOf(owner: string, claimed: string): string {
  const name = claimed.slice("cli:".length);
  return name === owner ? `cli:${owner}` : `cli:${owner} (claims ${name})`;
}

/**
 * Refuses a socket of another user before anything is sent: that user would get the command, and could forge the
 * answer. Root also accepts a socket of the data folder's owner, the user as whom a service runs (deploy/systemd).
 */
function assertOwn(dataDir: string, folder: string, path: string): void {
  const user = process.getuid?.();
  if (user === undefined) return;
  const [around, socket] = [lstatSync(folder), lstatSync(path)];
  const isTrusted = around.uid === user || (user === 0 && around.uid === statSync(dataDir).uid);
  if (!isTrusted || socket.uid !== around.uid) throw ownedByAnother(path);
  if (!around.isDirectory() || (around.mode & 0o077) !== 0) {
    throw new ManagementError(`${folder} is open to other users: chmod 700 it once you know that its socket is yours.`);
  }
}

function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch (cause) {
    if (codeOf(cause) === "EACCES" || codeOf(cause) === "EPERM") throw ownedByAnother(path);
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

/** The client connection of a request over the socket, which always comes from this machine. */
function connectionOf(server: Bun.Server<undefined>, request: Request): ClientConnection {
  return {
    address: () => "127.0.0.1",
    isLocal: () => true,
    keepOpen: (isKept) => server.timeout(request, isKept ? 0 : idle_ms / 1000),
  };
}

async function tried(
  request: Request,
  connection: ClientConnection,
  tryAs: (claimed: string) => Serve,
): Promise<Response> {
  const claimed = request.headers.get(actorHeader) ?? "";
  if (!actorForm.test(claimed)) return reply(400, { failure: "the actor is malformed" });
  return tryAs(claimed)(request, connection);
}

async function answer(
  request: Request,
  { actAs, migrations, failed }: Omit<Parameters<typeof adminSocket>[0], "dataDir" | "tryAs">,
): Promise<Response> {
  if (request.method !== "POST") return reply(200, { result: { migrations } });
  const command = await readCommand(request);
  if (typeof command === "string") return reply(400, { failure: command });
  try {
    return reply(200, { result: await actAs(command.actor)(command.verb, command.input) });
  } catch (cause) {
    if (cause instanceof ManagementError) return reply(422, { refusal: cause.message, code: cause.code });
    failed?.(cause);
    return reply(500, { failure: cause instanceof Error ? cause.message : String(cause) });
  }
}

/** The command in a request; a string says what is wrong with the request. */
async function readCommand(request: Request): Promise<{ actor: string; verb: Verb; input: unknown } | string> {
  let body: unknown;
  try {
    body = await request.json();
  } catch {
    return "the body is not JSON, or is nested too deeply";
  }
  if (typeof body !== "object" || body === null) return "the body is not an object";
  const { version, actor, verb, input } = body as Record<string, unknown>;
  if (version !== protocol_version) return versionMismatch;
  const known = verbs.find(({ name }) => name === verb);
  if (!known) return "the verb is unknown";
  if (typeof actor !== "string" || !actorForm.test(actor)) return "the actor is malformed";
  if (typeof input !== "object" || input === null) return "the input is not an object";
  return { actor, verb: known, input };
}

function reply(
  status: number,
  content: { result: unknown } | { refusal: string; code: string } | { failure: string },
): Response {
  return Response.json({ version: protocol_version, ...content } satisfies Reply, { status });
}

/** Whether a server listens at the socket. That the socket exists proves nothing: a killed server leaves it behind. */
async function isLive(path: string): Promise<boolean> {
  try {
    const { version } = await exchange(path, { method: "GET" }, probe_ms);
    if (version !== protocol_version) throw new ManagementError(versionMismatch);
    return true;
  } catch (cause) {
    if (cause instanceof ManagementError) throw cause;
    const code = codeOf(cause);
    if (code === "EACCES" || code === "EPERM") throw ownedByAnother(path);
    if (code === "ECONNREFUSED" || code === "ENOENT" || code === "FailedToOpenSocket") return false;
    throw new ManagementError(`The server at ${path} does not respond. Check its log, or restart it.`);
  }
}

async function call(path: string, actor: string, verb: Verb, input: unknown): Promise<unknown> {
  const body = JSON.stringify({ version: protocol_version, actor, verb: verb.name, input });
  const answer = await exchange(path, { method: "POST", body }, wait_ms(verb)).catch((cause) => {
    throw codeOf(cause) === "ECONNRESET" ? new ManagementError(stoppedBefore) : cause;
  });
  if ("refusal" in answer) throw refusalFrom(answer.refusal, answer.code);
  if ("failure" in answer) throw new Error(`the running server failed: ${answer.failure}`);
  return answer.result;
}

async function exchange(path: string, init: BunFetchRequestInit, limit_ms: number): Promise<Reply> {
  const response = await fetch(`${origin}/`, {
    ...init,
    unix: path,
    keepalive: false,
    signal: AbortSignal.timeout(limit_ms),
  });
  return (await response.json()) as Reply;
}

const versionMismatch =
  "The running server and this command are different versions of sluice. Use the same version for both.";

const stoppedBefore =
  "The server stopped before it answered. See whether the command was done when the server runs again.";

function ownedByAnother(path: string): ManagementError {
  return new ManagementError(`${path} belongs to another user. Run this command as the user that runs the server.`);
}
