/**
 * THE GATE of management comes before every verb over HTTP, and no verb is mounted without it. It checks, in this
 * order: TLS; the caller, an operator or a session of the console; the role; parameters; body. Then the verb acts
 * within the data that the caller may see.
 */
import type { TObject, TSchema } from "typebox";
import Type from "typebox";
import type { Principal } from "../../core/auth/verdict.ts";
import { readJson } from "../../core/body/read.ts";
import type { Call } from "../../core/http/call.ts";
import type { HttpAnswer } from "../../core/http/frame.ts";
import { json } from "../../core/http/json.ts";
import { sseHead } from "../../core/http/stream.ts";
import { Fault, type FaultCode } from "../../core/inference/fault.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { idIn, pathOf, queryOf } from "../../core/operations/path.ts";
import { guard } from "../../core/operations/serve-operation.ts";
import { contract } from "../../core/protocol/contract.ts";
import { encodeFault } from "../../core/protocol/openai-chat/fault.ts";
import { oneOf } from "../../core/protocol/shapes/contract.ts";
import { violationFault } from "../../core/protocol/violation.ts";
import { closestName } from "../../core/schema/closest.ts";
import { encode } from "../../core/schema/codec.ts";
import type { Caller } from "../management/caller.ts";
import type { ManagementContext } from "../management/context.ts";
import { type Verb, withoutMargins } from "../management/verb.ts";
import { type Followers, follow } from "./follow.ts";
import { shared } from "./shared.ts";

export const managementPath = "/management/v1";

export interface ManagementEntrance {
  /** Authenticates the caller of the request. Throws Fault. */
  authenticate(call: Call): Promise<Caller>;
  /** The context of verbs for this caller at this address. */
  contextFor(who: { caller: Caller; address: string; repeatKey: string | null }): ManagementContext;
  tls: "off" | "on" | "proxy";
  /** The host names under which the port may be called, besides IP addresses and `localhost`. */
  names?: readonly string[];
  /** Finds the key as which a caller tries a model. Absent: nobody can try a model. */
  trying?: Trying;
  /** The version that the OpenAPI document shows. */
  version: string;
}

/** Finds the key with which a caller of management tries a model (try-model.ts). */
export interface Trying {
  /**
   * The key with this ID. Null: the key that stands for the caller's identity tokens; the caller must then be a person
   * with a membership. Throws Fault.
   */
  principalFor(caller: Caller, keyId: string | null, address: string): Promise<Principal>;
}

/** The error codes of the gate itself. */
const gateFaults = [
  "invalid_value",
  "unknown_field",
  "missing_operator_token",
  "invalid_operator_token",
  "missing_role",
  "tls_required",
  "host_not_allowed",
  "rate_limit_exceeded",
  "overloaded",
  "storage_unavailable",
  "internal_error",
] as const satisfies FaultCode[];
const bodyFaults = ["invalid_json", "invalid_content_type", "missing_field", "request_too_large"] as const;

/** All error codes of a request for the verb: the gate's and the verb's own. */
export function faultsOf({ method, faults, live }: Verb): FaultCode[] {
  return [...gateFaults, ...(method === "get" ? [] : bodyFaults), ...(live ? ["draining" as const] : []), ...faults];
}

const repeatKeyPattern = "^[!-~]{1,255}$";
const versionPattern = '^(\\*|(W/)?"?[1-9][0-9]{0,14}"?)$';
const headersOfKind = {
  creation: {
    "idempotency-key": Type.Optional(
      Type.String({
        pattern: repeatKeyPattern,
        description: "Makes a repeat harmless.",
        "x-must-be": "1 to 255 printable ASCII characters without spaces",
      }),
    ),
  },
  change: {
    "if-match": Type.Optional(
      Type.String({
        pattern: versionPattern,
        description: "The `etag` that was read: else whatever is there is overwritten.",
        "x-must-be": "the 'etag' of an earlier answer, such as \"7\"",
      }),
    ),
  },
  reading: {},
  act: {},
};

/**
 * The schemas of the headers, the query and the body in which a request carries a verb's input. The contract derives
 * from them, too.
 */
export function placesOf(verb: Verb) {
  const { properties, type: _type, required: _required, ...options } = verb.takes as TObject;
  const { [verb.id ?? ""]: _, [verb.secondId ?? ""]: __, ...taken } = properties as Record<string, TSchema>;
  const isRead = verb.method === "get";
  const format = verb.formats || verb.live ? { format: Type.Optional(formatOf(verb)) } : {};
  return {
    headers: Type.Object(headersOfKind[verb.kind] as Record<string, TSchema>),
    query: Type.Object(isRead ? { ...taken, ...format } : {}),
    body: isRead ? null : Type.Object(taken, options),
  };
}

const eventsWords = "`events`: an event stream, which sends the answer now, and again whenever it has changed.";

function formatOf({ formats = {}, live }: Verb) {
  const described = Object.entries(formats).map(([name, { description }]) => `\`${name}\`: ${description}`);
  const names = ["json", ...Object.keys(formats), ...(live ? ["events"] : [])];
  return oneOf(names, { description: [...described, ...(live ? [eventsWords] : [])].join(" ") });
}

/** The largest request body that is accepted; sensible requests are much smaller. */
export const body_bytes_max = 256 * 1024;

export function gate(entrance: ManagementEntrance, verb: Verb, followers: Followers) {
  const read = readerOf(verb);
  const together = sharing(verb);
  const beat = beating(verb.live?.every_ms ?? 0);
  return async (dependencies: Dependencies, call: Call): Promise<HttpAnswer> => {
    requireTls(entrance, call);
    const caller = await admitted(entrance, verb, call);
    call.identified(caller.noted);
    const { format, repeatKey, input } = await read(dependencies, call);
    const context = entrance.contextFor({ caller, address: call.client, repeatKey });
    call.keepOpen();
    if (verb.live && format === "events") {
      const following = { entrance, followers, verb, event: verb.live.event, beat, dependencies, call };
      return events(following, () => together(context));
    }
    const form = verb.formats?.[format];
    const answer = await verb.act(context, verb.take(form?.asks?.(input) ?? input));
    return form ? written(form, form.write(answer)) : answered(encode(verb.answers, answer));
  };
}

/** Reads and encodes the answer of a live verb once for all its followers, since they all get the same answer. */
function sharing(verb: Verb): (context: ManagementContext) => Promise<string> {
  let reader: ManagementContext | null = null;
  const look = async () => JSON.stringify(encode(verb.answers, await verb.act(reader!, verb.take({}))));
  const ask = shared(look, (verb.live?.every_ms ?? 0) / 2, () => performance.now());
  return (context) => {
    reader = context;
    return ask();
  };
}

/** All calls of the returned function resolve at the same time: when the next interval of `every_ms` ends. */
function beating(every_ms: number): () => Promise<void> {
  let next: Promise<void> | null = null;
  return () => {
    next ??= Bun.sleep(every_ms).then(() => {
      next = null;
    });
    return next;
  };
}

/** The caller of the request, with a role that may use the verb. Throws Fault. */
export async function admitted(
  entrance: ManagementEntrance,
  verb: Pick<Verb, "roles" | "summary">,
  call: Call,
): Promise<Caller> {
  const caller = await entrance.authenticate(call);
  requireRole(caller, verb);
  return caller;
}

interface Following {
  entrance: ManagementEntrance;
  followers: Followers;
  verb: Verb;
  event: string;
  beat(): Promise<void>;
  dependencies: Dependencies;
  call: Call;
}

/**
 * Streams the verb's answers as events. Each time that a stream reads the answer, it checks whether its caller may
 * still use the verb. All streams do so at the same time, so that the stores combine the reads into one query
 * (src/stores/postgres/batched.ts).
 */
function events(
  { entrance, followers, verb, event, beat, dependencies, call }: Following,
  look: () => Promise<string>,
): HttpAnswer | Promise<HttpAnswer> {
  if (call.request.method === "HEAD") return new Response(null, { headers: sseHead({}) });
  // The gate has just admitted the caller, so the first read needs no check.
  let isAdmitted = true;
  return follow(followers, {
    event,
    beat,
    heartbeat_ms: dependencies.limits.heartbeat_ms,
    async read() {
      if (dependencies.lifecycle.draining) throw restarting();
      if (!isAdmitted) await admitted(entrance, verb, call);
      isAdmitted = false;
      return look();
    },
    faultBody: (fault) => encodeFault(fault, call.requestId),
  });
}

function restarting(): Fault {
  return new Fault("draining", "The node is about to stop. Please follow another one.", { retryAfterSeconds: 1 });
}

function answered(body: unknown): Response {
  const { version } = body as { version?: unknown };
  return json(200, body, typeof version === "number" ? { etag: `"${version}"` } : {});
}

/**
 * The number of lines in one part of an answer. The process serves other requests between the parts of a large answer.
 */
const lines_part = 500;

function written({ type, filename }: { type: string; filename: string }, lines: Iterable<string>): Response {
  const disposition = `attachment; filename="${filename}"`;
  const headers = { "content-type": type, "content-disposition": disposition, "cache-control": "no-store" };
  const iterator = Iterator.from(lines);
  const body = new ReadableStream({
    async pull(controller) {
      await Bun.sleep(0);
      const part = iterator.take(lines_part).toArray();
      if (part.length > 0) controller.enqueue(new TextEncoder().encode(part.join("")));
      if (part.length < lines_part) controller.close();
    },
    cancel() {
      iterator.return?.();
    },
  });
  return new Response(body, { headers });
}

export function requireTls({ tls }: ManagementEntrance, { connection }: Call): void {
  if (tls !== "off" || connection.isLocal()) return;
  throw new Fault(
    "tls_required",
    "Management over the network needs TLS. Set SLUICE_OPERATOR_TLS to 'on', or to 'proxy' if a proxy in front speaks TLS.",
  );
}

export function requireRole({ role, name }: Caller, { roles, summary }: Pick<Verb, "roles" | "summary">): void {
  if (roles.includes(role)) return;
  const needed = roles.join(" or ");
  throw new Fault("missing_role", `'${summary}' needs the role ${needed}, and ${name} has the role ${role}.`);
}

interface Read {
  /** The verb's input as JSON, before it is decoded. */
  input: Record<string, unknown>;
  format: string;
  repeatKey: string | null;
}

function readerOf(verb: Verb) {
  const { path, id, secondId, kind, summary } = verb;
  const places = placesOf(verb);
  const guardHeaders = guard(places.headers);
  const guardQuery = guard(places.query);
  const queryNames = Object.keys(places.query.properties);
  const body = places.body && contract(places.body, { topLevel: "closed" });
  return async ({ limits }: Dependencies, call: Call): Promise<Read> => {
    const { request } = call;
    const query = queryOf(request);
    checkNames(query, queryNames);
    // A verb that compares no version refuses `if-match`: if it ignored the header, the caller would take the condition
    // as met.
    if (kind !== "change" && kind !== "reading" && request.headers.has("if-match"))
      throw new Fault("invalid_value", `'${summary}' compares no version. Leave out 'if-match'.`, {
        param: "if-match",
      });
    const headers = guardHeaders((name) => request.headers.get(name)) as Record<string, string | undefined>;
    const { format = "json", ...parameters } = guardQuery((name) => query.get(name)?.trim() ?? null) as Record<
      string,
      string | undefined
    >;
    const input: Record<string, unknown> = parameters;
    if (body) {
      const bounded = { ...limits, body_bytes_max: Math.min(limits.body_bytes_max, body_bytes_max) };
      const value = withoutMargins((await readJson(request, bounded, () => {})).value);
      if (!body.satisfied(value)) throw violationFault(body.violation(value));
      Object.assign(input, value);
    }
    if (id !== null) input[id] = nameIn(managementPath + path, request);
    if (secondId !== null) input[secondId] = secondNameIn(request, path);
    const version = /[0-9]+/.exec(headers["if-match"] ?? "")?.[0];
    if (version !== undefined) input.version = Number(version);
    return { input, format, repeatKey: headers["idempotency-key"] ?? null };
  };
}

/** Refuses a parameter with any other name, and a repeated parameter, of which only one value could be used. */
export function checkNames(query: URLSearchParams, names: readonly string[]): void {
  for (const name of query.keys()) {
    if (query.getAll(name).length > 1)
      throw new Fault("invalid_value", `The parameter '${name}' comes more than once. Send it once.`, { param: name });
    if (names.includes(name)) continue;
    const likely = closestName(name, [...names]);
    const advice = likely ? ` Did you mean '${likely}'?` : "";
    throw new Fault("unknown_field", `There is no parameter '${name}'.${advice}`, { param: name });
  }
}

/** The name in the path, URL-decoded: it may have characters that must be encoded in a path. */
function nameIn(pattern: string, request: Request): string {
  return decodedName(idIn(pattern, request));
}

/** The second name in the path, at the position of the pattern's second variable. */
function secondNameIn(request: Request, pattern: string): string {
  const place = (managementPath + pattern).split("/").findLastIndex((part) => part.startsWith("{"));
  return decodedName(pathOf(request).split("/")[place] ?? "");
}

function decodedName(sent: string): string {
  try {
    return decodeURIComponent(sent);
  } catch {
    return sent;
  }
}
