/** Drafts a sluice.yaml for an existing engine: the models that it serves, with comments where a person should look. */
import type { Model } from "../inference/model.ts";
import type { UpstreamProtocol } from "../upstream/codecs.ts";
import { checkedKey } from "./api-key.ts";
import { type EngineModel, type Fetch, probeEngine } from "./engine.ts";
import { defaultModels } from "./models.ts";
import { publicIds } from "./public-id.ts";
import { schemaText } from "./settings/file.ts";

interface DraftUpstream {
  /** The upstream's name in the file. */
  name: string;
  url: string;
  protocol: UpstreamProtocol;
  /** The environment variable that holds the engine's key, or null if it needs none. */
  keyVariable: string | null;
  /** The date, in Unix seconds, of models whose engine reports none. */
  nowSeconds: number;
}

/** The file beside the draft to which its first line refers. */
const schema_file = "sluice.schema.json";
const upstreamKeyVariable = "SLUICE_UPSTREAM_KEY";

interface InitOptions {
  url: string;
  protocol?: UpstreamProtocol;
  apiKey: string | null;
  fetch: Fetch;
  nowSeconds: number;
}

interface InitDraft {
  /** The text of sluice.yaml. */
  yaml: string;
  /** Public ids of the models found. */
  models: string[];
  /** The text of `schema_file`, to stand beside it. */
  schema: string;
}

/** Probes and drafts; throws an Error whose message says what to do. The key itself never enters the file. */
export async function initConfiguration(options: InitOptions): Promise<InitDraft> {
  const { url: written, apiKey, protocol = "openai-chat", fetch, nowSeconds } = options;
  const checked = apiKey === null ? null : checkedKey(apiKey);
  if (checked && "problem" in checked) throw new Error(`The engine's key ${checked.problem}.`);
  const { url, models } = await probeEngine(written, checked?.key ?? null, fetch, protocol);
  const keyVariable = checked ? upstreamKeyVariable : null;
  const yaml = draftConfiguration(models, { name: "main", url, protocol, keyVariable, nowSeconds });
  return { yaml, models: publicIds(models.map((model) => model.name)), schema: schemaText() };
}

export function draftConfiguration(models: EngineModel[], upstream: DraftUpstream): string {
  const ids = publicIds(models.map((model) => model.name));
  const catalog = new Map(defaultModels().map((model) => [comparableName(model.id), model]));
  const entries = models.map((model, index) =>
    entryOf(model, ids[index]!, catalog.get(comparableName(ids[index]!)) ?? null, upstream),
  );
  return [
    `# yaml-language-server: $schema=./${schema_file}`,
    "#",
    "# What this Sluice serves. All fields: docs/configuration.md. SIGHUP reloads this file; a file with a mistake changes nothing.",
    "# The plans starter, pro and unlimited are built in; to add your own, write 'plans:'.",
    "",
    "upstreams:",
    `  ${upstream.name}:`,
    `    url: ${quoted(upstream.url)}`,
    `    protocol: ${upstream.protocol}`,
    ...(upstream.keyVariable ? [`    api_key: "\${${upstream.keyVariable}}"   # from the environment`] : []),
    "",
    "# Prices are micro-units per token, and count towards the plan of the organization.",
    "models:",
    ...entries,
    "",
  ].join("\n");
}

/** Values that the engine does not report come from the similar model of the default catalog, if there is one. */
function entryOf(model: EngineModel, id: string, similar: Model | null, upstream: DraftUpstream): string {
  const context = model.contextTokens ?? similar?.contextTokens ?? context_tokens_default;
  const guessedContext = model.contextTokens === null && !similar;
  const output = model.outputTokens_max ?? similar?.outputTokens_max ?? context;
  const capabilities = model.capabilities ?? (similar ? [...similar.capabilities] : ["tools", "structured_output"]);
  const guessedCapabilities = model.capabilities === null && !similar;
  const prices = similar?.prices ?? { input: 100, cachedInput: 10, cacheWrite: 125, output: 400 };
  const takesExtra = upstream.protocol === "openai-chat" && model.samplingFields.length > 0;
  const lines = [
    `  - id: ${quoted(id)}`,
    ...(similar ? [`    owned_by: ${quoted(similar.ownedBy)}`] : []),
    `    created: ${similar?.created ?? model.created ?? upstream.nowSeconds}`,
    `    context_window: ${context}${guessedContext ? "   # a guess: the engine does not report it" : ""}`,
    ...(output < context ? [`    max_output_tokens: ${output}`] : []),
    `    capabilities: [${capabilities.join(", ")}]${guessedCapabilities ? "   # a guess: the engine does not report it" : ""}`,
    `    prices: { input: ${prices.input}, cached_input: ${prices.cachedInput}, cache_write: ${prices.cacheWrite}, output: ${prices.output} }`,
    ...(takesExtra
      ? [`    extra_params: [${model.samplingFields.join(", ")}]   # fields of the engine that clients may send`]
      : []),
    `    routes: [{ upstream: ${upstream.name}, model: ${quoted(model.name)} }]`,
  ];
  return lines.join("\n");
}

/** Most engines can hold this much. An engine that cannot refuses the request itself. */
const context_tokens_default = 131_072;

/** JSON's strings are YAML's; a `${` of a name must not be taken for a variable. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll("${", () => "$${"));
}

function comparableName(id: string): string {
  return id
    .slice(id.indexOf("/") + 1)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "");
}
