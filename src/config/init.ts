/** Drafts a sluice.yaml for an existing engine: the models that it serves, with comments where a person should look. */
import type { Model } from "../core/inference/model.ts";
import { decimalOf, price_decimals, shortest } from "../core/inference/money.ts";
import { plain } from "../core/inference/plain-text.ts";
import type { Capability } from "../core/inference/request.ts";
import { samplingFields } from "../core/protocol/engine-fields.ts";
import type { UpstreamProtocol } from "../core/upstream/codecs.ts";
import { defaultTimeouts } from "../core/upstream/target.ts";
import { checkedKey } from "./api-key.ts";
import { flow } from "./check/amend.ts";
import { type CheckSettings, type Finding, verdictsOf } from "./check/check.ts";
import { isKindAsked, kindFindings, kindIn, pathsIn } from "./check/kinds.ts";
import { capabilitiesOf, modelRows, upstreamRows } from "./check/rows.ts";
import { dialectOf } from "./dialect.ts";
import { type Ask, asker, type EngineModel, type Fetch, probeEngine } from "./engine.ts";
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
  /** The rows that were found by asking. */
  rows?: ReturnType<typeof upstreamRows>;
  /** By the engine's name of a model, the answers that it gave. */
  found?: ReadonlyMap<string, readonly Finding[]>;
  /** Why the engine gave no answers; null if it did, or was not asked. */
  unasked?: string | null;
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
  /** Asks the engine. Absent: only its lists are read. */
  check?(settings: CheckSettings): Promise<Finding[]>;
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
  const { url: written, apiKey, protocol = "openai-chat", fetch, nowSeconds, check } = options;
  const checked = apiKey === null ? null : checkedKey(apiKey);
  if (checked && "problem" in checked) throw new Error(`The engine's key ${checked.problem}.`);
  const key = checked?.key ?? null;
  const { url, models, dialect: name } = await probeEngine(written, key, fetch, protocol);
  const keyVariable = checked ? upstreamKeyVariable : null;
  const dialect = dialectOf(name ?? "generic");
  const ask = asker(key, fetch, protocol, kind_ms);
  const found = check && protocol === "openai-chat" ? await foundKinds(models, url, ask) : new Map<string, Finding[]>();
  const asked = models.find((model) => isChat(model, found.get(model.name)));
  let findings: Finding[] = [];
  let unasked: string | null = null;
  if (asked && check) {
    const upstreamAsked = { name: "main", url, protocol, apiKey: key, timeouts: defaultTimeouts };
    const { name: model, contextTokens } = asked;
    try {
      findings = await check({ upstream: upstreamAsked, dialect, model, contextTokens, extent: "short" });
    } catch (cause) {
      unasked = cause instanceof Error ? cause.message : String(cause);
    }
  }
  const rows = upstreamRows(verdictsOf(findings), dialect, name);
  if (asked) found.set(asked.name, [...(found.get(asked.name) ?? []), ...findings]);
  const yaml = draftConfiguration(models, {
    name: "main",
    url,
    protocol,
    keyVariable,
    nowSeconds,
    rows,
    found,
    unasked,
  });
  return { yaml, models: publicIds(models.map((model) => model.name)), schema: schemaText() };
}

/** How many models are asked what they are for, and how long each may take: it may have to be loaded. */
const kinds_max = 16;
export const kind_ms = 60_000;

async function foundKinds(models: readonly EngineModel[], url: string, ask: Ask): Promise<Map<string, Finding[]>> {
  const found = new Map<string, Finding[]>();
  for (const { name } of models.filter(({ kind }) => kind === null).slice(0, kinds_max))
    found.set(name, await kindFindings(ask, url, name));
  return found;
}

function isChat({ kind }: EngineModel, findings: readonly Finding[] = []): boolean {
  return (kind ?? kindIn(findings) ?? "chat") === "chat";
}

export function draftConfiguration(models: EngineModel[], upstream: DraftUpstream): string {
  const rows = Object.entries(upstream.rows ?? {}).map(([name, value]) => `    ${name}: ${flow(value)}`);
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
    ...rows,
    ...(upstream.unasked ? [`    # It was asked, and did not answer: ${plain(upstream.unasked)}`] : []),
    "",
    "# The currency of prices and limits. The database keeps the one of its first start.",
    "metering: { currency: USD }",
    "",
    "# Prices are for a million tokens.",
    "models:",
    ...modelLines(models, upstream).map((line) => `  ${line}`),
    "",
  ].join("\n");
}

/** The list of models, as lines without indentation. */
export function modelLines(models: readonly EngineModel[], upstream: Omit<DraftUpstream, "url">): string[] {
  const ids = publicIds(models.map((model) => model.name));
  const catalog = new Map(defaultModels().map((model) => [comparableName(model.id), model]));
  return models.flatMap((model, index) =>
    entryOf(model, ids[index]!, catalog.get(comparableName(ids[index]!)) ?? null, upstream).map(
      (line, at) => (at === 0 ? "- " : "  ") + line,
    ),
  );
}

/** Values that the engine does not report come from the similar model of the default catalog, if there is one. */
function entryOf(
  model: EngineModel,
  id: string,
  similar: Model | null,
  upstream: Omit<DraftUpstream, "url">,
): string[] {
  const context = model.contextTokens ?? similar?.contextTokens ?? context_tokens_default;
  const guessedContext = model.contextTokens === null && !similar;
  const output = model.outputTokens_max ?? similar?.outputTokens_max ?? context;
  const findings = upstream.found?.get(model.name) ?? [];
  if (!isChat(model, findings)) return otherEntryOf(model, id, context, upstream, findings);
  const { bounds, extra_params: read = [] } = modelRows(verdictsOf(findings));
  const guess = guessOf(model, similar, findings);
  const prices = similar?.prices ?? { input: 100_000, cachedInput: 10_000, cacheWrite: 125_000, output: 400_000 };
  const fields = samplingFields.filter((name) => model.samplingFields.includes(name) || read.includes(name));
  const takesExtra = upstream.protocol === "openai-chat" && fields.length > 0;
  return [
    `id: ${quoted(id)}`,
    ...(similar ? [`owned_by: ${quoted(similar.ownedBy)}`] : []),
    ...(isOpen(model, findings) ? ["kind: chat   # a guess: its answers do not tell"] : []),
    `created: ${similar?.created ?? model.created ?? upstream.nowSeconds}`,
    `context_window: ${context}${guessedContext ? "   # a guess: the engine does not report it" : ""}`,
    ...(output < context ? [`max_output_tokens: ${output}`] : []),
    `capabilities: [${capabilitiesIn(model, similar, findings).join(", ")}]${guess ? `   # ${guess}` : ""}`,
    `prices: { input: ${written(prices.input)}, cached_input: ${written(prices.cachedInput)}, cache_write: ${written(prices.cacheWrite)}, output: ${written(prices.output)} }`,
    ...(takesExtra ? [`extra_params: [${fields.join(", ")}]   # fields of the engine that clients may send`] : []),
    ...(bounds ? [`bounds: ${bounds}`] : []),
    `routes: [{ upstream: ${upstream.name}, model: ${quoted(model.name)} }]`,
  ];
}

/** A price of a million tokens, from that of one. */
const written = (picos: number) => shortest(decimalOf(picos, price_decimals));

/** Reports whether the answers of a model leave its kind open, though it was asked for each. */
function isOpen({ kind }: EngineModel, findings: readonly Finding[]): boolean {
  return kind === null && isKindAsked(findings) && kindIn(findings) === null;
}

/** The entry of a model that does not chat. */
function otherEntryOf(
  { name, kind: said, contextTokens, created }: EngineModel,
  id: string,
  context: number,
  upstream: Omit<DraftUpstream, "url">,
  findings: readonly Finding[],
): string[] {
  const kind = said ?? kindIn(findings);
  const paths = pathsIn(findings);
  const why = paths.length > 0 ? `it answers ${paths.join(" and ")}` : "as the engine says";
  const guess = contextTokens === null ? "   # a guess: the engine does not report it" : "";
  return [
    `id: ${quoted(id)}`,
    `kind: ${kind}   # ${why}`,
    `created: ${created ?? upstream.nowSeconds}`,
    `context_window: ${contextTokens ?? Math.min(context, measured_tokens_default)}${guess}`,
    `prices: { ${kind === "completion" ? "input: 0.1, cached_input: 0.01, output: 0.4" : "input: 0.01"} }`,
    `routes: [{ upstream: ${upstream.name}, model: ${quoted(name)} }]`,
  ];
}

/** The engine's report, else the similar model's, else a guess; then with what its answers showed, and without the refused. */
function capabilitiesIn(model: EngineModel, similar: Model | null, findings: readonly Finding[]): Capability[] {
  const said = model.capabilities ?? (similar ? [...similar.capabilities] : guessed);
  const verdicts = verdictsOf(findings);
  const refused = capabilitiesOf(verdicts, "no");
  const all = new Set([...said, ...capabilitiesOf(verdicts, "yes")].filter((name) => !refused.includes(name)));
  if (!all.has("tools")) all.delete("parallel_tools");
  return [...all];
}

const guessed: Capability[] = ["tools", "structured_output"];

function guessOf(model: EngineModel, similar: Model | null, findings: readonly Finding[]): string | null {
  if (model.capabilities !== null || similar) return null;
  const verdicts = verdictsOf(findings);
  const known = [...capabilitiesOf(verdicts, "yes"), ...capabilitiesOf(verdicts, "no")];
  const open = guessed.filter((name) => !known.includes(name));
  if (open.length === 0) return null;
  return open.length === guessed.length
    ? "a guess: the engine does not report it"
    : `${open.join(", ")}: a guess, the engine's answers do not tell`;
}

/** The least of the usual embedding models; an engine that takes more may be told so. */
const measured_tokens_default = 8192;

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
