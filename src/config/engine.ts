/**
 * Reads an engine's list of models in the forms that engines have: OpenAI's list with the additions of vLLM, llama.cpp,
 * engines of Messages and aggregators, and Ollama's own list. The answers are not trusted: they are bounded, and only
 * values of the right form are used.
 */

import type { ModelKind } from "../core/inference/model.ts";
import { isPlain } from "../core/inference/plain-text.ts";
import type { Capability } from "../core/inference/request.ts";
import { type DialectName, dialects } from "../core/protocol/dialects.ts";
import { type SamplingField, samplingFields } from "../core/protocol/engine-fields.ts";
import { type UpstreamProtocol, upstreamCodecs } from "../core/upstream/codecs.ts";
import { parseLarge } from "../core/upstream/engine-json.ts";
import type { Upstream } from "../core/upstream/target.ts";
import { dialectBySigns, signPages } from "./recognize.ts";
import { record } from "./record.ts";
import { whyUnreached } from "./unreached.ts";
import { checkedUrl } from "./upstream-url.ts";

export interface EngineModel {
  /** The engine's own name for the model. */
  name: string;
  /** The kind that the engine reports; null if it reports none. */
  kind: ModelKind | null;
  contextTokens: number | null;
  /**
   * Whether `contextTokens` is the context of the model itself, of which the engine may serve less (served-context.ts).
   */
  isOwnContext?: boolean;
  outputTokens_max: number | null;
  capabilities: Capability[] | null;
  /** The date in Unix seconds; null if the engine does not report it. */
  created: number | null;
  /** The sampling fields that the model's chat completions take. */
  samplingFields: readonly SamplingField[];
}

export interface Engine {
  /** The base URL that answered, up to and with `/v1` if the engine has that. */
  url: string;
  models: EngineModel[];
  /** The dialect by which the engine was recognised; null if by none. */
  dialect: DialectName | null;
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

const list_ms = 10_000;
const answer_bytes_max = 16 * 1024 * 1024;
const models_max = 1000;
const details_max = 100;

/**
 * Asks an engine for the list of its models. Throws an Error whose message says what to do. `key`: the engine's API key,
 * or null; no message shows it. `advice`: how to give the engine a key.
 */
export async function probeEngine(
  written: string,
  key: string | null,
  fetch: Fetch,
  protocol: UpstreamProtocol = "openai-chat",
  advice = "Set SLUICE_UPSTREAM_KEY.",
): Promise<Engine> {
  const checked = checkedUrl(written);
  if ("problem" in checked) throw new Error(`The engine's URL ${checked.problem}.`);
  const ask = asker(key, fetch, protocol);
  const root = checked.url.replace(/\/v1$/, "");
  const tried: EngineReply[] = [];
  const found = async (url: string, body: unknown, models: EngineModel[]): Promise<Engine> => ({
    url,
    models: await detailed(models, root, ask),
    dialect: await dialectOfEngine(root, body, ask),
  });
  for (const base of new Set([checked.url, `${root}/v1`, root])) {
    const answer = await ask(`${base}/models`);
    const models = modelsOf(answer.body);
    if (models && models.length > 0) return await found(base, answer.body, models);
    tried.push(answer);
    // If nothing answers or the key is refused, other paths would fail as well.
    if (answer.status === null || answer.status === 401 || answer.status === 403) break;
  }
  const { body } = tried[0]?.status === null ? { body: null } : await ask(`${root}/api/tags`);
  const tags = modelsOf(body);
  if (tags && tags.length > 0) return await found(`${root}/v1`, body, tags);
  throw new Error(complaint(checked.url, tried, key === null ? advice : null));
}

export interface EngineReply {
  /** The HTTP status; null if there was no answer. */
  status: number | null;
  failure?: unknown;
  body: unknown;
}

export type Ask = (url: string, body?: Record<string, unknown>) => Promise<EngineReply>;

/**
 * Returns a function that asks the engine. `answer_ms`: how long an answer may take, for which a model may have to be
 * loaded.
 */
export function asker(key: string | null, fetch: Fetch, protocol: UpstreamProtocol, answer_ms = list_ms): Ask {
  const headers = { accept: "application/json", ...upstreamCodecs[protocol].headers(key || null) };
  return async (url, body) => {
    const signal = AbortSignal.timeout(answer_ms);
    const post = body && {
      method: "POST",
      body: JSON.stringify(body),
      headers: { ...headers, "content-type": "application/json" },
    };
    try {
      // No proxy is used, and no redirect is followed, which could carry the key elsewhere: docs/design/runtime.md,
      // Towards engines.
      const direct = { proxy: false } as unknown as RequestInit;
      const response = await fetch(url, { headers, signal, redirect: "manual", ...direct, ...post });
      return { status: response.status, body: response.ok ? await jsonOf(response) : await dropped(response) };
    } catch (failure) {
      return { status: null, body: null, failure };
    }
  };
}

/** Asks with the headers and the TLS settings of requests to the upstream. */
export function fetchAs({ headers, tls }: Pick<Upstream, "headers" | "tls">, fetch: Fetch): Fetch {
  const secured = tls ? { tls: { ...(tls.ca === null ? {} : { ca: tls.ca }), ...tls.certificate } } : {};
  return (url, init) => fetch(url, { ...init, headers: { ...(init.headers as object), ...headers }, ...secured });
}

async function dropped(response: Response): Promise<null> {
  await response.body?.cancel();
  return null;
}

async function jsonOf(response: Response): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > answer_bytes_max) return null;
    chunks.push(chunk);
  }
  try {
    return await parseLarge(new TextDecoder().decode(Buffer.concat(chunks)));
  } catch {
    return null;
  }
}

/** Words for an engine that runs but takes no requests yet; null for any other status. */
export function notReady(status: number | null): string | null {
  return status === 503 || status === 429 ? `answered ${status}: it still loads its model, or is overloaded` : null;
}

/** The sentences about an engine that does not answer, with the reason if the failure tells it. */
export function silence(url: string, failure: unknown, trust: string): string {
  const why = whyUnreached(failure, trust);
  return why === null
    ? `Nothing answers at ${url}. Start the engine, or correct the URL.`
    : `The engine at ${url} cannot be reached: ${why}.`;
}

function complaint(url: string, tried: EngineReply[], advice: string | null): string {
  const statuses = tried.map((answer) => answer.status);
  if (statuses[0] === null) return silence(url, tried[0]?.failure, "set NODE_EXTRA_CA_CERTS to its file");
  if (statuses.some((status) => status === 401 || status === 403)) {
    return advice === null ? `The engine at ${url} refuses the key.` : `The engine at ${url} needs a key. ${advice}`;
  }
  const loading = statuses.map(notReady).find((says) => says !== null);
  if (loading) return `The engine at ${url} ${loading}. Wait until it is ready, then try again.`;
  const answered = `${url}/models returned ${statuses[0]}`;
  if (tried.some((answer) => Array.isArray(record(answer.body).data) || Array.isArray(record(answer.body).models))) {
    return `The engine at ${url} lists no models. Load a model, then try again.`;
  }
  return `No list of models at ${url}: ${answered}. Is this the base URL of an engine, including /v1?`;
}

async function dialectOfEngine(root: string, list: unknown, ask: Ask): Promise<DialectName | null> {
  const owners = (listOf(list) ?? []).map((item) => record(item).owned_by);
  const known = dialectBySigns(new URL(root).hostname, owners);
  if (known) return known;
  for (const { path, form, name } of signPages)
    if (form.test(JSON.stringify((await ask(root + path)).body))) return name;
  return null;
}

function listOf(body: unknown): unknown[] | undefined {
  const { data, models } = record(body);
  return [data, models, body].find((candidate) => Array.isArray(candidate));
}

/**
 * The models in `{data: [{id}]}` of OpenAI, `{models: [{name}]}` of Ollama, or a bare list. Null for any other body.
 */
export function modelsOf(body: unknown): EngineModel[] | null {
  const list = listOf(body);
  if (!list) return null;
  const found = new Map<string, EngineModel>();
  for (const item of list) {
    const model = modelOf(item);
    if (model && !found.has(model.name) && found.size < models_max) found.set(model.name, model);
  }
  return [...found.values()];
}

function modelOf(item: unknown): EngineModel | null {
  const entry = record(item);
  const name = [entry.id, entry.name, entry.model].find((candidate) => typeof candidate === "string");
  if (!name || name.length > 512 || !isPlain(name)) return null;
  const meta = record(entry.meta);
  const provider = record(entry.top_provider);
  const capabilities = capabilitiesOf(entry);
  return {
    name,
    kind: capabilities ? "chat" : kindOf(entry),
    contextTokens: firstCount(
      entry.max_model_len,
      meta.n_ctx,
      meta.n_ctx_train,
      entry.context_length,
      entry.context_window,
      entry.max_context_length,
      entry.max_input_tokens,
    ),
    outputTokens_max: firstCount(provider.max_completion_tokens, entry.max_output_tokens, entry.max_tokens),
    capabilities,
    created: createdOf(entry),
    samplingFields: samplingFieldsOf(entry),
  };
}

/**
 * The kind that Infinity and Ollama report for models that embed or rank. `completion` says nothing: llama.cpp reports
 * it for every model.
 */
function kindOf({ capabilities }: Record<string, unknown>): ModelKind | null {
  if (!Array.isArray(capabilities) || capabilities.includes("completion")) return null;
  if (capabilities.includes("embedding") || capabilities.includes("embed")) return "embedding";
  return capabilities.includes("rerank") ? "rerank" : null;
}

function samplingFieldsOf({ owned_by, supported_parameters }: Record<string, unknown>): readonly SamplingField[] {
  if (Array.isArray(supported_parameters)) return samplingFields.filter((name) => supported_parameters.includes(name));
  const dialect = dialectBySigns("", [owned_by]);
  return dialect ? dialects[dialect].sampling : [];
}

/** The capabilities that aggregators' lists show; null if the entry has no list of parameters. */
function capabilitiesOf(entry: Record<string, unknown>): Capability[] | null {
  const parameters = entry.supported_parameters;
  if (!Array.isArray(parameters)) return null;
  const inputs = record(entry.architecture).input_modalities;
  const reads = (kind: string) => Array.isArray(inputs) && inputs.includes(kind);
  const has = (...names: string[]) => names.some((name) => parameters.includes(name));
  return setFlags({
    tools: has("tools"),
    parallel_tools: has("tools") && has("parallel_tool_calls"),
    vision: reads("image"),
    reasoning: has("reasoning", "reasoning_effort", "include_reasoning"),
    structured_output: has("structured_outputs", "response_format"),
    logprobs: has("logprobs"),
    files: reads("file"),
    audio_input: reads("audio"),
  });
}

function setFlags(flags: Record<Capability, boolean>): Capability[] {
  return (Object.keys(flags) as Capability[]).filter((name) => flags[name]);
}

function createdOf({ created, created_at }: Record<string, unknown>): number | null {
  const seconds = typeof created_at === "string" ? Math.floor(Date.parse(created_at) / 1000) : created;
  // A date before the first chat models, or one in milliseconds, is not used.
  return typeof seconds === "number" && Number.isSafeInteger(seconds) && seconds > 1.5e9 && seconds < 1e10
    ? seconds
    : null;
}

/**
 * Adds facts that the list lacks: Ollama reports them for each model, llama.cpp for the one model that it has loaded.
 */
async function detailed(models: EngineModel[], root: string, ask: Ask): Promise<EngineModel[]> {
  if (models.every((model) => model.capabilities !== null)) return models;
  if (models.length === 1) {
    const props = record((await ask(`${root}/props`)).body);
    if (props.default_generation_settings) return models.map((model) => withProps(model, props));
  }
  if (models.some((model) => model.contextTokens !== null)) return models;
  const tags = modelsOf((await ask(`${root}/api/tags`)).body);
  if (!tags || tags.length === 0) return models;
  const described: EngineModel[] = [];
  for (const model of models.slice(0, details_max))
    described.push(withShow(model, record((await ask(`${root}/api/show`, { model: model.name })).body)));
  return [...described, ...models.slice(details_max)];
}

function withProps(model: EngineModel, props: Record<string, unknown>): EngineModel {
  const template = record(props.chat_template_caps);
  const modalities = record(props.modalities);
  const contextTokens = firstCount(record(props.default_generation_settings).n_ctx) ?? model.contextTokens;
  if (Object.keys(template).length === 0) return { ...model, contextTokens };
  const tools = template.supports_tools === true || template.supports_tool_calls === true;
  const capabilities = setFlags({
    tools,
    parallel_tools: tools && template.supports_parallel_tool_calls === true,
    vision: modalities.vision === true,
    reasoning: template.supports_preserve_reasoning === true,
    // The grammar and the sampler of llama.cpp provide these for every model.
    structured_output: true,
    logprobs: true,
    files: false,
    audio_input: modalities.audio === true,
  });
  return { ...model, contextTokens, capabilities };
}

function withShow(model: EngineModel, show: Record<string, unknown>): EngineModel {
  const { capabilities, model_info, parameters } = show;
  const chats = Array.isArray(capabilities) && capabilities.includes("completion");
  const kind = chats ? "chat" : kindOf(show);
  const context = Object.entries(record(model_info)).find(([name]) => name.endsWith(".context_length"))?.[1];
  const own = firstCount(context) ?? model.contextTokens;
  const written = typeof parameters === "string" ? /^num_ctx\s+(\d+)/m.exec(parameters) : null;
  const asked = firstCount(written && Number(written[1]));
  const contextTokens = asked === null ? own : Math.min(asked, own ?? asked);
  const described = { ...model, kind, contextTokens, isOwnContext: asked === null && own !== null };
  if (!Array.isArray(capabilities) || (kind !== null && kind !== "chat")) return described;
  const tools = capabilities.includes("tools");
  const flags = {
    tools,
    parallel_tools: tools,
    vision: capabilities.includes("vision"),
    reasoning: capabilities.includes("thinking"),
    structured_output: true,
    logprobs: true,
    files: false,
    audio_input: capabilities.includes("audio"),
  };
  return { ...described, capabilities: setFlags(flags) };
}

/** The first candidate that is a whole number above 0, at most 100 million; null if there is none. */
export function firstCount(...candidates: unknown[]): number | null {
  const count = candidates.find(
    (candidate) => typeof candidate === "number" && Number.isSafeInteger(candidate) && candidate >= 1,
  );
  return typeof count === "number" ? Math.min(count, 100_000_000) : null;
}
