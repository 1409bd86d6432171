// Starts Sluice, LiteLLM or Portkey in front of an engine, each with its own settings for an engine of Chat
// Completions.
import { ended, litellm, portkey, versions } from "../../../bench/speed/others.ts";
import { model, startService } from "../../harness/engine.ts";

export interface Gateway {
  version: string;
  /** The gateway's URL, without a path. */
  url: string;
  key: string;
  model: string;
  /** Headers to send in addition to the key. */
  headers: Record<string, string>;
  stop(): Promise<unknown>;
}

export const gateways: Record<string, (engineUrl: string) => Promise<Gateway>> = {
  sluice: ours,
  litellm: throughLitellm,
  portkey: throughPortkey,
};

async function ours(engineUrl: string): Promise<Gateway> {
  const { url, key, stop } = await startService({ engineUrl });
  return { version: "of this folder", url, key, model, headers: {}, stop };
}

async function throughLitellm(engineUrl: string): Promise<Gateway> {
  const parameters = { model: `hosted_vllm/${model}`, api_base: engineUrl, api_key: "x" };
  const { url, child } = await litellm({
    // The engine speaks Chat Completions only, so LiteLLM has to translate the other protocols.
    model_list: [{ model_name: model, litellm_params: { ...parameters, use_chat_completions_api: true } }],
    litellm_settings: { use_chat_completions_url_for_anthropic_messages: true },
    general_settings: { master_key: "sk-peers" },
  });
  const stop = () => ended(child);
  return { version: versions.litellm, url, key: "sk-peers", model, headers: {}, stop };
}

async function throughPortkey(engineUrl: string): Promise<Gateway> {
  const { url, child } = await portkey(false);
  const headers = { "x-portkey-provider": "openai", "x-portkey-custom-host": engineUrl };
  const stop = () => ended(child);
  return { version: versions.portkey, url, key: "any", model, headers, stop };
}
