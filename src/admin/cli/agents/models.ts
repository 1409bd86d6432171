/** The models of a server that an agent can use. */
import { jsonOf } from "../calling.ts";
import type { Access } from "../sign-in/access.ts";
import { request } from "../sign-in/service.ts";
import type { AgentModel } from "./agent.ts";

interface List {
  data?: { id: string }[];
  /** Models that can use tools. Older servers do not send this member. */
  models?: { slug: string; context_window: number }[];
}

/**
 * The models that the agent can use. Empty if the key may not list models. Throws an Error if the server refuses the
 * token.
 */
export async function agentModels({ url, secret }: Access): Promise<AgentModel[]> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await request(url, "/v1/models?client_version=0", { headers });
  const body = (await jsonOf(response)) as (List & { error?: { message?: string } }) | null;
  if (response.status === 403) return [];
  if (!response.ok) throw new Error(body?.error?.message ?? `${url} answered ${response.status}.`);
  return (
    body?.models?.map(({ slug, context_window }) => ({ id: slug, context_tokens: context_window })) ??
    body?.data?.map(({ id }) => ({ id, context_tokens: null })) ??
    []
  );
}

/**
 * Chooses the model for the agent. `wanted`: the model that the user typed or set in SLUICE_MODEL; null: the first
 * model of the list is chosen.
 */
export function chosenModel(models: readonly AgentModel[], wanted: string | null): AgentModel {
  const found = wanted === null ? models[0] : models.find(({ id }) => id === wanted);
  if (found) return found;
  if (wanted === null)
    throw new Error("The server lists no model that you may use with tools. Name one in SLUICE_MODEL.");
  // The list may lack names that the agent knows, such as aliases. So a model that is not listed is passed on; the
  // server refuses an unknown model itself.
  return { id: wanted, context_tokens: null };
}
