/**
 * What stands before every verb of the management interface, in this order: TLS; who asks; whether the role allows it;
 * parameters; body. Then the verb, and its refusals in the words of the one catalogue.
 */

import type { Dependencies } from "../../api/dependencies.ts";
import { guard } from "../../api/parameters.ts";
import { idIn, queryOf } from "../../api/path.ts";
import type { OperatorAuthentication } from "../../auth/operator.ts";
import { readJson } from "../../body/read.ts";
import { Fault, type FaultCode } from "../../inference/fault.ts";
import { ManagementError, type RefusalKind } from "../../management/error.ts";
import type { Management } from "../../management/management.ts";
import { contract } from "../../protocol/contract.ts";
import { violationFault } from "../../protocol/violation.ts";
import { closestName } from "../../schema/closest.ts";
import type { Operator } from "../../store/operators.ts";
import type { Call } from "../call.ts";
import { json } from "../json.ts";
import { budgetedKeyJson, teamJson } from "./budget-records.ts";
import { type ManagementOperation, managementPath } from "./operation.ts";
import { keyJson, organizationJson, planJson } from "./records.ts";
import { argumentsOf } from "./revived.ts";

export interface ManagementEntrance {
  authenticate: OperatorAuthentication;
  /** The verbs on behalf of this operator, who asks from this address. */
  manageFor(who: { operator: Operator; address: string; repeatKey: string | null }): Management;
  tls: "off" | "on" | "proxy";
  /** By which names the port may be asked, besides addresses and `localhost`. */
  names?: readonly string[];
  /** Of the contract. */
  version: string;
}

/** Larger than any request that does something. */
const body_bytes_max = 256 * 1024;

export function serveManagement(entrance: ManagementEntrance, operation: ManagementOperation) {
  const read = readerOf(operation);
  return async (dependencies: Dependencies, call: Call): Promise<Response> => {
    requireTls(entrance, call);
    const operator = await entrance.authenticate(call.request.headers, call.client);
    call.notes.operator = operator.id;
    requireRole(operator, operation);
    const { format = "json", ...taken } = await read(dependencies, call);
    const form = operation.formats?.[String(format)];
    const repeatKey = operation.kind === "creation" ? repeatKeyIn(call.request.headers) : null;
    const manage = entrance.manageFor({ operator, address: call.client, repeatKey });
    call.keepOpen();
    return refusedAsFault(async () => {
      const result = await invoke(manage, operation, form?.asks?.(taken) ?? taken);
      return form ? written(form, form.write(result as never)) : answered(operation, result);
    });
  };
}

function invoke(manage: Management, { verb }: ManagementOperation, taken: Record<string, unknown>): Promise<unknown> {
  return (manage[verb] as (input: unknown) => Promise<unknown>)(taken);
}

function answered({ encode }: ManagementOperation, result: unknown): Response {
  const body = encode(result as never) as { version?: unknown };
  return json(200, body, typeof body.version === "number" ? { etag: `"${body.version}"` } : {});
}

/** A hundred thousand lines take their time: requests are served between parts of them. */
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

function requireTls({ tls }: ManagementEntrance, { connection }: Call): void {
  if (tls !== "off" || connection.isLocal()) return;
  throw new Fault(
    "tls_required",
    "Management over the network needs TLS. Set SLUICE_OPERATOR_TLS to 'on', or to 'proxy' if a proxy in front speaks TLS.",
  );
}

function requireRole({ role, name }: Operator, { also, summary }: ManagementOperation): void {
  if (role === "admin" || also.some((one) => one === role)) return;
  const roles = ["admin", ...also].join(" or ");
  throw new Fault("missing_role", `'${summary}' needs the role ${roles}, and operator ${name} has the role ${role}.`);
}

/** What the verb takes: the id in the path, the query or the body, and the version that was read. */
function readerOf({ path, id, method, takes, kind }: ManagementOperation) {
  const guardQuery = method === "get" && takes ? guard(takes) : null;
  const body = method === "get" ? null : contract(takes!, { topLevel: "closed" });
  const names = Object.keys(takes?.properties ?? {});
  return async (dependencies: Dependencies, call: Call): Promise<Record<string, unknown>> => {
    const { request } = call;
    const inPath = id === undefined ? {} : { [id]: nameIn(managementPath + path, request) };
    const query = queryOf(request);
    for (const name of query.keys()) {
      if (method === "get" && names.includes(name)) continue;
      const meant = closestName(name, method === "get" ? names : []);
      throw new Fault("unknown_field", `There is no parameter '${name}'.${meant ? ` Did you mean '${meant}'?` : ""}`, {
        param: name,
      });
    }
    const version = kind === "change" ? versionIn(request.headers) : {};
    if (!body) return { ...argumentsOf(guardQuery?.((name) => query.get(name)) ?? {}), ...inPath };
    const { limits } = dependencies;
    const bounded = { ...limits, body_bytes_max: Math.min(limits.body_bytes_max, body_bytes_max) };
    const { value } = await readJson(request, bounded, () => {});
    if (!body.satisfied(value)) throw violationFault(body.violation(value));
    return { ...argumentsOf(value as Record<string, unknown>), ...inPath, ...version };
  };
}

/** A name may have letters that a path has only encoded. */
function nameIn(pattern: string, request: Request): string {
  const sent = idIn(pattern, request);
  try {
    return decodeURIComponent(sent);
  } catch {
    return sent;
  }
}

/** As the answer's `etag` had it: `"7"`. */
function versionIn(headers: Headers): { version?: number } {
  const written = headers.get("if-match")?.trim();
  if (written === undefined || written === "*") return {};
  const version = /^(?:W\/)?"?(\d{1,15})"?$/.exec(written)?.[1];
  if (version !== undefined && version !== "0") return { version: Number(version) };
  throw new Fault("invalid_value", "'if-match' must be the 'etag' of an earlier answer, such as \"7\".", {
    param: "if-match",
  });
}

function repeatKeyIn(headers: Headers): string | null {
  const key = headers.get("idempotency-key");
  if (key === null || /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new Fault("invalid_value", "'idempotency-key' must be 1 to 255 printable ASCII characters without spaces.", {
    param: "idempotency-key",
  });
}

async function refusedAsFault<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof ManagementError)) throw thrown;
    const current = thrown.current && { current: currentJson(thrown.current) };
    throw new Fault(refusals[thrown.kind].code, thrown.message, current ? { body: current } : {});
  }
}

function currentJson(current: NonNullable<ManagementError["current"]>) {
  if ("slug" in current) return organizationJson(current);
  if ("budget" in current) return budgetedKeyJson(current);
  if ("team" in current) return teamJson(current);
  return "key" in current ? keyJson(current) : planJson(current);
}

const refusals: Record<RefusalKind, { code: FaultCode }> = {
  invalid: { code: "invalid_value" },
  not_found: { code: "resource_not_found" },
  taken: { code: "already_exists" },
  state: { code: "wrong_state" },
  stale: { code: "version_conflict" },
  reused: { code: "idempotency_key_reused" },
};
