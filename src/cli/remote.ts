/**
 * The verbs of another node, over its management interface: what `--server` means. Each operation says how its verb is
 * asked for and how its answer reads (src/http/management/operation.ts), so that nothing is written twice.
 */
import { type ManagementOperation, managementPath } from "../http/management/operation.ts";
import { managementOperations } from "../http/management/operations.ts";
import { camelCase, revived, snakeCase } from "../http/management/revived.ts";
import { ManagementError } from "../management/error.ts";
import { type Management, managementVerbs } from "../management/management.ts";
import { allPages } from "../management/page.ts";

export interface RemoteServer {
  /** The operator's port: `https://sluice.example:9090`. */
  url: string;
  token: string;
}

const call_ms = 60_000;
/** A check of all records takes its time. */
const check_ms = 30 * 60_000;

/** Nothing is asked until a verb is called. */
export function remoteManagement(server: RemoteServer, ask: typeof fetch = fetch): Management {
  const served = managementVerbs.map((verb) => {
    const operation = managementOperations.find((one) => one.verb === verb);
    const call = (input: Input = {}) => (operation ? carriedOut(server, operation, input, ask) : notServed(verb));
    return [verb, call] as const;
  });
  const manage = Object.fromEntries(served) as unknown as Management;
  return {
    ...manage,
    listOrganizations: () => allPages((page) => manage.pageOrganizations(page)),
    listKeys: async (input) => byOrganization(await allPages((page) => manage.pageKeys({ ...input, ...page }))),
    listTeams: async (input) => byOrganization(await allPages((page) => manage.pageTeams({ ...input, ...page }))),
    listAudit: async ({ organization, limit }) =>
      (await manage.pageAudit({ organization: organization ?? null, limit: limit ?? 50 })).items,
  };
}

/** As the verbs themselves list them; ids sort by their time. */
function byOrganization<Item extends { organization: { id: string } }>(items: Item[]): Item[] {
  return items.toSorted((one, other) =>
    one.organization.id < other.organization.id ? -1 : Number(one.organization.id > other.organization.id),
  );
}

type Input = Record<string, unknown>;

async function notServed(verb: string): Promise<never> {
  throw new ManagementError(`The management interface has no '${verb}'. Run this command on the node itself.`);
}

async function carriedOut(
  server: RemoteServer,
  operation: ManagementOperation,
  input: Input,
  ask: typeof fetch,
): Promise<unknown> {
  const { answers, read, verb } = operation;
  const wait_ms = verb === "checkUsage" ? check_ms : call_ms;
  const response = await reached(server, () =>
    ask(urlOf(server, operation, input), {
      method: operation.method.toUpperCase(),
      headers: headersOf(server, operation, input),
      redirect: "manual",
      signal: AbortSignal.timeout(wait_ms),
      ...(operation.method === "get" ? {} : { body: JSON.stringify(takenFrom(operation, input)) }),
    }),
  );
  const body = await jsonOf(response);
  if (!response.ok) throw refusalOf(server, response.status, body);
  return read(revived(answers, body) as never);
}

function urlOf({ url }: RemoteServer, { path, id, method, ...operation }: ManagementOperation, input: Input): string {
  const filled = id === undefined ? path : path.replace("{id}", encodeURIComponent(String(input[id])));
  const asked = new URLSearchParams();
  if (method === "get") {
    for (const [name, value] of Object.entries(takenFrom(operation, input))) asked.set(name, String(value));
  }
  return `${url.replace(/\/+$/, "")}${managementPath}${filled}${asked.size > 0 ? `?${asked}` : ""}`;
}

function headersOf({ token }: RemoteServer, { kind }: ManagementOperation, input: Input): Record<string, string> {
  const { version } = input;
  return {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    ...(kind === "change" && typeof version === "number" ? { "if-match": `"${version}"` } : {}),
  };
}

/** What is absent is not sent; null is, where the operation takes it. */
function takenFrom({ takes }: Pick<ManagementOperation, "takes">, input: Input): Record<string, unknown> {
  const names = Object.entries(takes?.properties ?? {});
  return Object.fromEntries(
    names.flatMap(([name, schema]) => {
      const value = input[camelCase(name)];
      const isNullable = "anyOf" in schema;
      return value === undefined || (value === null && !isNullable) ? [] : [[snakeCase(name), value]];
    }),
  );
}

async function reached(server: RemoteServer, work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${server.url} cannot be reached: ${why}`, { cause });
  }
}

async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return null;
  }
}

function refusalOf({ url }: RemoteServer, status: number, body: unknown): Error {
  const error = (body as { error?: { message?: unknown; code?: unknown } } | null)?.error;
  if (typeof error?.message !== "string") {
    return new ManagementError(
      `${url} answered ${status}, not as a management interface does. Is it the operator's port?`,
    );
  }
  if (error.code === "route_not_found") {
    return new ManagementError(`${url} has no management interface. Name the operator's port (SLUICE_OPERATOR_PORT).`);
  }
  return status >= 500 ? new Error(error.message) : new ManagementError(error.message);
}
