/** How `sluice try` sends a message and reads its receipt: as the signed-in caller, with --server, or on the node's machine. */

import type { RequestReceipt } from "../../core/operations/receipt-shape.ts";
import { encode } from "../../core/schema/codec.ts";
import { managementPath } from "../http/gate.ts";
import { ManagementError } from "../management/error.ts";
import { Request } from "../management/requests.ts";
import { agentModels } from "./agents/models.ts";
import { jsonOf } from "./calling.ts";
import { remoteServer, runningServer, socketCaller } from "./connect.ts";
import type { Services } from "./services.ts";
import { accessTo } from "./sign-in/access.ts";
import { serverAt } from "./sign-in/commands.ts";
import { request } from "./sign-in/service.ts";
import { socketTry } from "./socket.ts";

export interface TryEntrance {
  /** The server's name in messages. */
  server: string;
  /** `body`: a chat completion. */
  complete(body: string): Promise<Response>;
  receiptOf(id: string): Promise<RequestReceipt | "unsettled" | "forbidden">;
  /** Null if the caller can list none. */
  firstModel(): Promise<string | null>;
}

export interface TryPlace {
  /** The URL of a server where the caller is signed in; else that of the last sign-in. */
  at?: string;
  /** The ID of the key that an operator uses. */
  key?: string;
}

const answer_ms_max = 15 * 60_000;

export async function tryEntrance(services: Services, { key, at }: TryPlace): Promise<TryEntrance> {
  const server = remoteServer(services);
  if (server && at !== undefined) throw new Error("Give --server or --at, not both: --at is for who is signed in.");
  if (server && key === undefined)
    throw new Error("An operator tries a model as a key: name it with --key. To list keys, run: sluice key list");
  if (server) {
    const completions = `${managementPath}/try?key=${encodeURIComponent(key!)}`;
    const access = { url: server.url.replace(/\/+$/, ""), secret: server.token };
    return { ...overHttp(access, completions, `${managementPath}/requests/`), firstModel: async () => null };
  }
  if (key !== undefined) return onThisMachine(services, key, at);
  const access = await accessTo(services, at === undefined ? undefined : serverAt(at));
  return {
    ...overHttp(access, "/v1/chat/completions", "/v1/service/requests/"),
    firstModel: async () => (await agentModels({ ...access, kind: "key" }))[0]?.id ?? null,
  };
}

function overHttp(
  { url, secret }: { url: string; secret: string },
  completions: string,
  receipts: string,
): Pick<TryEntrance, "server" | "complete" | "receiptOf"> {
  const authorization = `Bearer ${secret}`;
  const headers = { authorization, "content-type": "application/json" };
  return {
    server: url,
    complete: (body) => request(url, completions, { method: "POST", headers, body }, answer_ms_max),
    async receiptOf(id) {
      const response = await request(url, receipts + id, { headers: { authorization } });
      if (!response.ok) return response.status === 404 ? "unsettled" : "forbidden";
      const receipt = (await jsonOf(response)) as RequestReceipt | null;
      return receipt && receipt.outcome !== "running" ? receipt : "unsettled";
    },
  };
}

/** Through the socket of the running server, which needs no token. */
async function onThisMachine(services: Services, key: string, at: string | undefined): Promise<TryEntrance> {
  const storage = services.storage();
  const [manage, complete] =
    at === undefined && !storage.databaseUrl
      ? [await runningServer(services, storage), await socketTry(socketCaller(services, storage))]
      : [null, null];
  if (!manage || !complete)
    throw new Error(
      "--key is for operators: on the machine of a running server with the embedded database, or with --server.",
    );
  return {
    server: "The server of this machine",
    complete: (body) => complete(key, body),
    async receiptOf(id) {
      try {
        const found = encode(Request, await manage.findRequest({ id })) as RequestReceipt;
        return found.outcome === "running" ? "unsettled" : found;
      } catch (cause) {
        if (cause instanceof ManagementError && cause.code === "resource_not_found") return "unsettled";
        throw cause;
      }
    },
    firstModel: async () => null,
  };
}
