/** Calls the verbs of management at another node, through its operator's port: for `--server`. */
import { managementPath } from "../http/gate.ts";
import { client } from "../management/client.ts";
import { ManagementError, refusalFrom } from "../management/error.ts";
import type { Verb } from "../management/verb.ts";
import type { Management } from "../management/verbs.ts";
import { jsonOf, reached, wait_ms } from "./calling.ts";
import { pastProxies } from "./safe-url.ts";

export interface RemoteServer {
  /** The operator's port: `https://sluice.example:9090`. */
  url: string;
  token: string;
}

type Input = Record<string, unknown>;

/** The verbs of management at another node. Sends nothing until a verb is called. */
export function remoteManagement(server: RemoteServer, send: typeof fetch = fetch): Management {
  return client(async (verb, json) => {
    const { version, [verb.id ?? ""]: id, [verb.secondId ?? ""]: second, ...taken } = json as Input;
    const url = urlOf(server, verb, [id, second], taken);
    const response = await reached(server, () =>
      send(url, {
        method: verb.method.toUpperCase(),
        headers: {
          authorization: `Bearer ${server.token}`,
          "content-type": "application/json",
          ...(typeof version === "number" ? { "if-match": `"${version}"` } : {}),
        },
        redirect: "manual",
        ...pastProxies(server.url),
        signal: AbortSignal.timeout(wait_ms(verb)),
        ...(verb.method === "get" ? {} : { body: JSON.stringify(taken) }),
      }),
    );
    const body = await jsonOf(response);
    if (!response.ok) throw refusalOf(server, response.status, body);
    return body;
  });
}

function urlOf({ url }: RemoteServer, { path, method }: Verb, names: unknown[], taken: Input): string {
  const query = new URLSearchParams();
  if (method === "get") {
    for (const [name, value] of Object.entries(taken)) query.set(name, String(value));
  }
  // The parts `.` and `..` and an empty part cannot be in a URL's path: they would lead to another path.
  const wrong = names.find((name) => /^\.{0,2}$/.test(String(name)));
  if (wrong !== undefined) throw new ManagementError(`'${wrong}' is no name.`, "resource_not_found");
  const [id, second] = names.map((name) => encodeURIComponent(String(name)));
  const filled = path.replace("{id}", id!).replace(/\{\w+\}/, second!);
  return `${url.replace(/\/+$/, "")}${managementPath}${filled}${query.size > 0 ? `?${query}` : ""}`;
}

export function refusalOf({ url }: RemoteServer, status: number, body: unknown): Error {
  const error = (body as { error?: { message?: unknown; code?: unknown } } | null)?.error;
  if (typeof error?.message !== "string") {
    return new ManagementError(
      `${url} answered ${status}, not as a management interface does. Is it the operator's port?`,
    );
  }
  if (error.code === "route_not_found") {
    return new ManagementError(`${url} has no management interface. Name the operator's port (SLUICE_OPERATOR_PORT).`);
  }
  return status >= 500 ? new Error(error.message) : refusalFrom(error.message, error.code);
}
