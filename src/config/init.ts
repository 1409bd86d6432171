/** Drafts a sluice.yaml for running engines: the models that they serve, with comments where a person should look. */

import { shortest } from "../admin/store/amounts.ts";
import type { Model } from "../core/inference/model.ts";
import { decimalOf, price_decimals } from "../core/inference/money.ts";
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
import { withServedContexts } from "./served-context.ts";
import { schemaText } from "./settings/file.ts";

interface DraftUpstream {
  /** The upstream's name in the file. */
  name: string;
  url: string;
  protocol: UpstreamProtocol;
  /** The environment variable that holds the engine's key, or null if it needs none. */
  keyVariable: string | null;
  /** The date, in Unix seconds, for models whose engine reports none. */
  nowSeconds: number;
  rows?: ReturnType<typeof upstreamRows>;
  /** The findings about each model, by the engine's name for it. */
  found?: ReadonlyMap<string, readonly Finding[]>;
  /** Why the engine gave no answers; null if it did, or was not asked. */
  unasked?: string | null;
}

/** The name of the schema file beside the draft, to which its first line refers. */
const schema_file = "sluice.schema.json";

export interface InitEngine {
  /** The upstream's name in the file. */
  name: string;
  url: string;
  apiKey: string | null;
  /** The environment variable that holds the key. */
  keyVariable: string;
}

interface InitOptions {
  engines: readonly InitEngine[];
  protocol?: UpstreamProtocol;
  fetch: Fetch;
  nowSeconds: number;
  /** Asks the engine questions. Absent: only its list is read. */
  check?(settings: CheckSettings): Promise<Finding[]>;
}

interface DraftEngine extends DraftUpstream {
  models: readonly EngineModel[];
}

/** One model of one engine, under its public id. */
interface Served {
  id: string;
  model: EngineModel;
  upstream: Omit<DraftUpstream, "url">;
}

interface InitDraft {
  yaml: string;
  /** The public ids of the models found. */
  models: string[];
  /** The text of `schema_file`, to stand beside it. */
  schema: string;
}

/**
 * Reads the engines and drafts the file. Throws an Error whose message says what to do. A key itself never enters the
 * file.
 */
export async function initConfiguration(options: InitOptions): Promise<InitDraft> {
  // Engines are asked one after another, because two names may lead to the same one, which may load a model to answer.
  const drafted: DraftEngine[] = [];
  for (const engine of options.engines) drafted.push(await draftEngine(engine, options));
  const models = [...Map.groupBy(drafted.flatMap(servedBy), ({ id }) => id).keys()];
  return { yaml: draftConfiguration(drafted), models, schema: schemaText() };
}

async function draftEngine(
  { name: upstream, url: written, apiKey, keyVariable }: InitEngine,
  { protocol = "openai-chat", fetch, nowSeconds, check }: InitOptions,
): Promise<DraftEngine> {
  const checked = apiKey === null ? null : checkedKey(apiKey);
  if (checked && "problem" in checked) throw new Error(`The engine's key ${checked.problem} (${keyVariable}).`);
  const key = checked?.key ?? null;
  const { url, models, dialect: name } = await probeEngine(written, key, fetch, protocol, `Set ${keyVariable}.`);
  const dialect = dialectOf(name ?? "generic");
  const ask = asker(key, fetch, protocol, kind_ms);
  const found = check && protocol === "openai-chat" ? await foundKinds(models, url, ask) : new Map<string, Finding[]>();
  const asked = models.find((model) => isChat(model, found.get(model.name)));
  let findings: Finding[] = [];
  let unasked: string | null = null;
  if (asked && check) {
    const upstreamAsked = { name: upstream, url, protocol, apiKey: key, timeouts: defaultTimeouts };
    const { name: model, contextTokens } = asked;
    try {
      findings = await check({ upstream: upstreamAsked, dialect, model, contextTokens, extent: "short" });
    } catch (cause) {
      unasked = cause instanceof Error ? cause.message : String(cause);
    }
  }
  const rows = upstreamRows(verdictsOf(findings), dialect, name);
  if (asked) found.set(asked.name, [...(found.get(asked.name) ?? []), ...findings]);
  const kept = checked ? keyVariable : null;
  // Ollama tells the context of a loaded model only, and the questions have made it load the models.
  const served = await withServedContexts(models, url, ask);
  return { name: upstream, url, protocol, keyVariable: kept, nowSeconds, rows, found, unasked, models: served };
}

/** How many models are asked for their kind, and how long each may take, because it may have to be loaded. */
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

export function draftConfiguration(engines: readonly DraftEngine[]): string {
  return [
    `# yaml-language-server: $schema=./${schema_file}`,
    "#",
    "# What this Sluice serves. All fields: docs/configuration.md. SIGHUP reloads this file; a file with a mistake changes nothing.",
    "# The plans starter, pro and unlimited are built in; to add your own, write 'plans:'.",
    "",
    "upstreams:",
    ...engines.flatMap(upstreamLines),
    "",
    "# The currency of prices and limits. The database keeps the one of its first start.",
    "metering: { currency: USD }",
    "",
    "# Prices are for a million tokens.",
    "models:",
    ...linesOf(engines.flatMap(servedBy)).map((line) => `  ${line}`),
    "",
  ].join("\n");
}

function upstreamLines({ name, url, protocol, keyVariable, rows = {}, unasked }: DraftUpstream): string[] {
  return [
    `  ${name}:`,
    `    url: ${quoted(url)}`,
    `    protocol: ${protocol}`,
    ...(keyVariable ? [`    api_key: "\${${keyVariable}}"   # from the environment`] : []),
    ...Object.entries(rows).map(([row, value]) => `    ${row}: ${flow(value)}`),
    ...(unasked ? [`    # It was asked, and did not answer: ${plain(unasked)}`] : []),
  ];
}

/** The list of an engine's models, as lines without indentation. */
export const modelLines = (models: readonly EngineModel[], upstream: Omit<DraftUpstream, "url">): string[] =>
  linesOf(servedBy({ ...upstream, models }));

function servedBy({ models, ...upstream }: Omit<DraftEngine, "url">): Served[] {
  const ids = publicIds(models.map((model) => model.name));
  return models.map((model, index) => ({ id: ids[index]!, model, upstream }));
}

/**
 * The entry of a model that several engines serve: it has a route to each, and the capabilities that all of them have.
 */
function linesOf(all: readonly Served[]): string[] {
  const catalog = new Map(defaultModels().map((model) => [comparableName(model.id), model]));
  return [...Map.groupBy(all, ({ id }) => id).values()].flatMap((same) => {
    const [first, ...others] = same.toSorted((one, other) => contextOf(one) - contextOf(other));
    const alike = others.filter(
      (one) => isChat(one.model, findingsOf(one)) === isChat(first!.model, findingsOf(first!)),
    );
    const routes = same
      .filter((one) => one === first || alike.includes(one))
      .map(({ model, upstream }) => `{ upstream: ${upstream.name}, model: ${quoted(model.name)} }`);
    const entry = entryOf(first!, catalog.get(comparableName(first!.id)) ?? null, alike);
    return [...entry, `routes: [${routes.join(", ")}]`].map((line, at) => (at === 0 ? "- " : "  ") + line);
  });
}

const contextOf = ({ model }: Served) => model.contextTokens ?? Number.POSITIVE_INFINITY;
const findingsOf = ({ model, upstream }: Served) => upstream.found?.get(model.name) ?? [];

/**
 * The entry without its routes. Values that the engine does not report come from a similar model of the default
 * catalog, if there is one. `others`: the same model at other engines.
 */
function entryOf(served: Served, similar: Model | null, others: readonly Served[]): string[] {
  const { id, model, upstream } = served;
  const context = model.contextTokens ?? similar?.contextTokens ?? context_tokens_default;
  const output = model.outputTokens_max ?? similar?.outputTokens_max ?? context;
  const findings = findingsOf(served);
  if (!isChat(model, findings)) return otherEntryOf(model, id, context, upstream, findings);
  const { bounds } = modelRows(verdictsOf(findings));
  const guess = guessOf(model, similar, findings);
  const prices = similar?.prices ?? { input: 100_000, cachedInput: 10_000, cacheWrite: 125_000, output: 400_000 };
  const fields = samplingFields.filter((name) => [served, ...others].every((one) => reads(one, name)));
  const capabilities = others.reduce(
    (shared, one) => shared.filter((name) => capabilitiesIn(one.model, similar, findingsOf(one)).includes(name)),
    capabilitiesIn(model, similar, findings),
  );
  const takesExtra = upstream.protocol === "openai-chat" && fields.length > 0;
  return [
    `id: ${quoted(id)}`,
    ...(similar ? [`owned_by: ${quoted(similar.ownedBy)}`] : []),
    ...(isOpen(model, findings) ? ["kind: chat   # a guess: its answers do not tell"] : []),
    `created: ${similar?.created ?? model.created ?? upstream.nowSeconds}`,
    `context_window: ${context}${contextNote(model, similar !== null)}`,
    ...(output < context ? [`max_output_tokens: ${output}`] : []),
    `capabilities: [${capabilities.join(", ")}]${guess ? `   # ${guess}` : ""}`,
    `prices: { input: ${written(prices.input)}, cached_input: ${written(prices.cachedInput)}, cache_write: ${written(prices.cacheWrite)}, output: ${written(prices.output)} }`,
    ...(takesExtra ? [`extra_params: [${fields.join(", ")}]   # fields of the engine that clients may send`] : []),
    ...(bounds && others.length === 0 ? [`bounds: ${bounds}`] : []),
  ];
}

/** A comment on a context that the engine may not serve. `isKnown`: the default catalog knows the model's context. */
function contextNote({ contextTokens, isOwnContext }: EngineModel, isKnown = false): string {
  if (isOwnContext) return "   # the model's own: Ollama serves what 'ollama ps' says, often 4096";
  return contextTokens === null && !isKnown ? "   # a guess: the engine does not report it" : "";
}

/** Whether the engine reads this field for the model, by its list or its answers. */
function reads(served: Served, field: (typeof samplingFields)[number]): boolean {
  const { extra_params = [] } = modelRows(verdictsOf(findingsOf(served)));
  return served.model.samplingFields.includes(field) || extra_params.includes(field);
}

/** The written price of a million tokens, from the price of one. */
const written = (picos: number) => shortest(decimalOf(picos, price_decimals));

/** Whether a model's kind is still open after the questions about each kind. */
function isOpen({ kind }: EngineModel, findings: readonly Finding[]): boolean {
  return kind === null && isKindAsked(findings) && kindIn(findings) === null;
}

/** The entry of a model that does not chat (completion, embedding or rerank). */
function otherEntryOf(
  model: EngineModel,
  id: string,
  context: number,
  upstream: Omit<DraftUpstream, "url">,
  findings: readonly Finding[],
): string[] {
  const { contextTokens, created } = model;
  const kind = model.kind ?? kindIn(findings);
  const paths = pathsIn(findings);
  const why = paths.length > 0 ? `it answers ${paths.join(" and ")}` : "as the engine says";
  return [
    `id: ${quoted(id)}`,
    `kind: ${kind}   # ${why}`,
    `created: ${created ?? upstream.nowSeconds}`,
    `context_window: ${contextTokens ?? Math.min(context, measured_tokens_default)}${contextNote(model)}`,
    `prices: { ${kind === "completion" ? "input: 0.1, cached_input: 0.01, output: 0.4" : "input: 0.01"} }`,
  ];
}

/**
 * The capabilities: the engine's report, or else a similar model's, or else a guess; with those that its answers
 * showed, and without those that it refused.
 */
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

/** The smallest context of the usual embedding models. If the engine takes more, the operator can raise it. */
const measured_tokens_default = 8192;

/** A context that most engines can hold. An engine with a smaller one refuses longer requests itself. */
const context_tokens_default = 131_072;

/** JSON strings are YAML strings. A `${` in a name must not be taken for a variable. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll("${", () => "$${"));
}

function comparableName(id: string): string {
  return id
    .slice(id.indexOf("/") + 1)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "");
}
