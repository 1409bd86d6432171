/**
 * The three ways in which `sluice try` sends a message and reads its receipt: as the signed-in caller, with --server,
 * or on the node's machine.
 */

import type { ModelKind } from "../../core/inference/model.ts";
import { encode } from "../../core/schema/codec.ts";
import type { RequestReceipt } from "../../features/receipts/receipt-shape.ts";
import { managementPath } from "../http/gate.ts";
import { triedQuery, tryPath } from "../http/try-model.ts";
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
  /** Sends an inference request with this path and body. */
  ask(path: string, body: string): Promise<Response>;
  receiptOf(id: string): Promise<RequestReceipt | "unsettled" | "forbidden">;
  /** The kind of the model; `chat` if the caller cannot read the list of models. */
  kindOf(model: string): Promise<ModelKind>;
  /** The first model that the caller can list; null if there is none. */
  firstModel(): Promise<string | null>;
}

export interface TryPlace {
  /** The URL of a server where the caller is signed in; absent: the server of the last sign-in. */
  at?: string;
  /** The ID of the key as which an operator tries the model. */
  key?: string;
}

const answer_ms_max = 15 * 60_000;

export async function tryEntrance(services: Services, { key, at }: TryPlace): Promise<TryEntrance> {
  const server = remoteServer(services);
  if (server && at !== undefined) throw new Error("Give --server or --at, not both: --at is for who is signed in.");
  if (server && key === undefined)
    throw new Error("An operator tries a model as a key: name it with --key. To list keys, run: sluice key list");
  if (server) {
    const access = { url: server.url.replace(/\/+$/, ""), secret: server.token };
    return {
      ...overHttp(access, (path) => `${tryPath}?${triedQuery(key!, path)}`, `${managementPath}/requests/`),
      async kindOf(model) {
        const configuration = await answerAt<Configured>(access, `${managementPath}/configuration`);
        return kindAmong(configuration?.models, model);
      },
      firstModel: async () => null,
    };
  }
  if (key !== undefined) return onThisMachine(services, key, at);
  const access = await accessTo(services, at === undefined ? undefined : serverAt(at));
  return {
    ...overHttp(access, (path) => path, "/v1/service/requests/"),
    kindOf: async (model) => kindAmong([await answerAt<Kinded>(access, `/v1/models/${model}`)], model),
    firstModel: async () => (await agentModels({ ...access, kind: "key" }))[0]?.id ?? null,
  };
}

function overHttp(
  { url, secret }: { url: string; secret: string },
  placeOf: (path: string) => string,
  receipts: string,
): Pick<TryEntrance, "server" | "ask" | "receiptOf"> {
  const authorization = `Bearer ${secret}`;
  const headers = { authorization, "content-type": "application/json" };
  return {
    server: url,
    ask: (path, body) => request(url, placeOf(path), { method: "POST", headers, body }, answer_ms_max),
    async receiptOf(id) {
      const response = await request(url, receipts + id, { headers: { authorization } });
      if (!response.ok) return response.status === 404 ? "unsettled" : "forbidden";
      const receipt = (await jsonOf(response)) as RequestReceipt | null;
      return receipt && receipt.outcome !== "running" ? receipt : "unsettled";
    },
  };
}

interface Kinded {
  id: string;
  kind?: ModelKind | undefined;
}
interface Configured {
  models: Kinded[];
}

function kindAmong(models: readonly (Kinded | null)[] = [], wanted: string): ModelKind {
  return models.find((one) => one?.id === wanted)?.kind ?? "chat";
}

/** The JSON of a GET of this path. Null if the caller may not read it. */
async function answerAt<T>({ url, secret }: { url: string; secret: string }, path: string): Promise<T | null> {
  const response = await request(url, path, { headers: { authorization: `Bearer ${secret}` } });
  return response.ok ? ((await jsonOf(response)) as T) : null;
}

/** Tries a model through the socket of the running server, which needs no token. */
async function onThisMachine(services: Services, key: string, at: string | undefined): Promise<TryEntrance> {
  const storage = services.storage();
  const [manage, ask] =
    at === undefined && !storage.databaseUrl
      ? [await runningServer(services, storage), await socketTry(socketCaller(services, storage))]
      : [null, null];
  if (!manage || !ask)
    throw new Error(
      "--key is for operators: on the machine of a running server with the embedded database, or with --server.",
    );
  return {
    server: "The server of this machine",
    ask: (path, body) => ask(key, path, body),
    kindOf: async (model) => kindAmong((await manage.showConfiguration({})).models, model),
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
