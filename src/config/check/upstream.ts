/**
 * Checks an upstream of sluice.yaml: chooses the model and the dialect in which it is asked, and derives rows from the
 * answers.
 */
import { parse } from "yaml";
import type { Dialect } from "../../core/protocol/dialect.ts";
import type { DialectName } from "../../core/protocol/dialects.ts";
import type { CatalogModel } from "../../core/routing/catalog.ts";
import type { Upstream } from "../../core/upstream/target.ts";
import type { Configuration } from "../configuration.ts";
import { dialectOf } from "../dialect.ts";
import { asker, type Engine, type EngineModel, type Fetch, fetchAs, probeEngine } from "../engine.ts";
import { kind_ms, modelLines } from "../init.ts";
import { dialectBySigns, isContradicted } from "../recognize.ts";
import type { ConfigurationFile } from "../settings/file.ts";
import type { ModelEntry } from "../settings/model.ts";
import { simulatorName } from "../simulator.ts";
import type { Addition } from "./amend.ts";
import { type CheckSettings, type Finding, verdictsOf } from "./check.ts";
import { kindFindings, kindIn, pathsIn } from "./kinds.ts";
import { capabilitiesOf, modelRows, upstreamRows } from "./rows.ts";

export interface UpstreamAsked {
  name: string;
  /** The model to check: its public id, or the engine's own name. */
  model?: string | undefined;
  extent: CheckSettings["extent"];
  configuration: Configuration;
  /** The content of sluice.yaml; null if there is none. */
  file: ConfigurationFile | null;
  fetch: Fetch;
  nowSeconds: number;
  check(settings: CheckSettings): Promise<Finding[]>;
  asks?(does: string): void;
}

export interface UpstreamChecked {
  upstream: Upstream;
  model: string;
  /**
   * The name of the dialect in which the model was asked. `isFound`: the engine was recognised by it; false:
   * sluice.yaml names it, or it is the default.
   */
  dialect: DialectName;
  isFound: boolean;
  findings: Finding[];
  additions: Addition[];
  /** The lines of sluice.yaml that the engine's answers contradict, and that only a person may change. */
  notes: string[];
}

/** Checks the upstream. Throws an Error whose message says what to do. */
export async function checkUpstream(asked: UpstreamAsked): Promise<UpstreamChecked> {
  const { name, configuration, file, extent, asks } = asked;
  const upstream = upstreamNamed(name, configuration);
  const listed = await listOf(upstream, asked);
  const entry = file?.upstreams?.[name];
  const dialectName = entry?.dialect ?? listed.dialect ?? "generic";
  const dialect = dialectOf(dialectName, entry?.dialect_rows);
  const model = modelAsked(asked, listed.models);
  const contextTokens = listed.models.find((one) => one.name === model)?.contextTokens ?? null;
  const settings: CheckSettings = { upstream, dialect, model, contextTokens, extent };
  const ask = asker(upstream.apiKey, fetchAs(upstream, asked.fetch), upstream.protocol, kind_ms);
  const kinds = upstream.protocol === "openai-chat" ? await kindFindings(ask, upstream.url, model, asks) : [];
  const chats = (kindIn(kinds) ?? "chat") === "chat";
  const findings = [...kinds, ...(chats ? await asked.check(asks ? { ...settings, asks } : settings) : [])];
  const found = entry?.dialect === undefined ? listed.dialect : null;
  const parts = { asked, dialect, found, listed, model, findings };
  return {
    upstream,
    model,
    dialect: dialectName,
    isFound: found !== null,
    findings,
    additions: withCurrency(asked, [...ofUpstream(parts), ...ofModels(parts)]),
    notes: [...notesOn(parts, entry?.dialect)],
  };
}

function upstreamNamed(name: string, { upstreams }: Configuration): Upstream {
  const known = upstreams.filter((one) => one.name !== simulatorName);
  const upstream = known.find((one) => one.name === name);
  if (upstream) return upstream;
  const names = [...new Set(known.map((one) => one.name))].join(", ");
  throw new Error(
    `There is no upstream '${name}'. ${names ? `Known are ${names}.` : "sluice.yaml has none; add one."}`,
  );
}

/** The engine's list. An engine whose list cannot be read may still answer, if the model to ask is known. */
async function listOf(upstream: Upstream, asked: UpstreamAsked): Promise<Pick<Engine, "models" | "dialect">> {
  try {
    const advice = asked.file?.upstreams?.[upstream.name] ? "Set its api_key in sluice.yaml." : undefined;
    const { url, apiKey, protocol } = upstream;
    return await probeEngine(url, apiKey, fetchAs(upstream, asked.fetch), protocol, advice);
  } catch (cause) {
    if (routed(asked).length === 0 && asked.model === undefined) throw cause;
    return { models: [], dialect: dialectBySigns(new URL(upstream.url).hostname, []) };
  }
}

/** The models of sluice.yaml that the upstream serves, each with the engine's name for it. */
function routed({ name, configuration, file }: UpstreamAsked): { model: CatalogModel; engineName: string }[] {
  if (!file?.models) return [];
  return [...configuration.catalog.models.values()].flatMap((model) =>
    model.routes.filter(({ upstream }) => upstream.name === name).map((route) => ({ model, engineName: route.model })),
  );
}

function modelAsked(asked: UpstreamAsked, listed: readonly EngineModel[]): string {
  const candidates = routed(asked);
  const { model, name } = asked;
  if (model !== undefined) return candidates.find((one) => one.model.id === model)?.engineName ?? model;
  const names = candidates.map(({ engineName }) => engineName);
  const isListed = (one: string) => listed.some((other) => other.name === one);
  const chosen = names.find(isListed) ?? names[0] ?? listed[0]?.name;
  if (chosen === undefined) throw new Error(`The engine of '${name}' lists no models. Choose one with --model.`);
  return chosen;
}

interface CheckedUpstream {
  asked: UpstreamAsked;
  dialect: Dialect;
  found: DialectName | null;
  listed: Pick<Engine, "models" | "dialect">;
  model: string;
  findings: readonly Finding[];
}

function ofUpstream({ asked, dialect, found, findings }: CheckedUpstream): Addition[] {
  const entry: Record<string, unknown> | undefined = asked.file?.upstreams?.[asked.name];
  if (!entry) return [];
  const path = ["upstreams", asked.name];
  const { dialect_rows, ...rows } = upstreamRows(verdictsOf(findings), dialect, found);
  const all = entry.dialect_rows === undefined && dialect_rows ? { ...rows, dialect_rows } : rows;
  return [...missing(path, entry, all), ...missing([...path, "dialect_rows"], entry.dialect_rows, dialect_rows ?? {})];
}

/** The rows that the file lacks; none if the entry to which they belong is missing. */
function missing(path: Addition["path"], entry: unknown, rows: object): Addition[] {
  if (typeof entry !== "object" || entry === null) return [];
  return Object.entries(rows).flatMap(([name, value]) => (name in entry ? [] : [{ path, name, value }]));
}

function ofModels(parts: CheckedUpstream): Addition[] {
  const { asked, model, findings } = parts;
  if (!asked.file?.upstreams?.[asked.name]) return [];
  const entries = asked.file.models;
  if (!entries) return [written(parts, null)];
  const at = entries.findIndex((entry) => servesAlone(entry, asked.name, model));
  if (at < 0) return entries.some((entry) => serves(entry, asked.name, model)) ? [] : [written(parts, "models")];
  const { capabilities = [], extra_params = [], ...rows } = modelRows(verdictsOf(findings));
  const entry = entries[at]!;
  const path = ["models", at];
  return [
    ...missing(path, entry, rows),
    ...lacking(path, "capabilities", entry.capabilities, capabilities),
    ...lacking(path, "extra_params", entry.extra_params, extra_params),
  ];
}

/**
 * Adds the currency if models with prices are added and the file names none: a file with prices must name it. Without
 * prices it may be absent, and the default currency applies.
 */
function withCurrency({ file, configuration }: UpstreamAsked, additions: Addition[]): Addition[] {
  const areModels = additions.some(({ path, name }) => (path[0] ?? name) === "models");
  if (!areModels || file?.metering?.currency !== undefined) return additions;
  const { currency } = configuration.metering;
  const addition = file?.metering
    ? { path: ["metering"], name: "currency", value: currency }
    : { path: [], name: "metering", value: { currency } };
  return [...additions, addition];
}

function serves({ routes }: ModelEntry, name: string, model: string): boolean {
  return routes.some((route) => route.upstream === name && route.model === model);
}

/** Whether all routes of the model's entry lead to this engine: what one engine can do says nothing about others. */
function servesAlone(entry: ModelEntry, name: string, model: string): boolean {
  return serves(entry, name, model) && entry.routes.every((route) => route.upstream === name);
}

function lacking(path: Addition["path"], name: string, old: readonly string[] | undefined, found: readonly string[]) {
  if (old === undefined) return found.length > 0 ? [{ path, name, value: found }] : [];
  return found.flatMap((value) => (old.includes(value) ? [] : [{ path: [...path, name], name: null, value }]));
}

/** The entries of all models of the engine, or of the model that was asked, as `sluice init` writes them. */
function written({ asked, listed, model, findings }: CheckedUpstream, into: "models" | null): Addition {
  const { name, nowSeconds, configuration } = asked;
  const { protocol } = upstreamNamed(name, configuration);
  const unlisted: EngineModel = {
    name: model,
    kind: null,
    contextTokens: null,
    outputTokens_max: null,
    capabilities: null,
    created: null,
    samplingFields: [],
  };
  const one = listed.models.find((other) => other.name === model) ?? unlisted;
  const models = into === null && listed.models.includes(one) ? listed.models : [one];
  const found = new Map([[model, findings]]);
  const block = modelLines(models, { name, protocol, keyVariable: null, nowSeconds, found });
  const value: unknown[] = parse(block.join("\n"));
  if (into === null) return { path: [], name: "models", value, block };
  return { path: [into], name: null, value: value[0], block: block.map((line) => line.slice(2)) };
}

function* notesOn(
  { asked, listed, model, findings }: CheckedUpstream,
  said: DialectName | undefined,
): Generator<string> {
  const { dialect: signs } = listed;
  if (isContradicted(said, signs)) yield `sluice.yaml says dialect: ${said}, and the engine's signs say ${signs}.`;
  const refused = capabilitiesOf(verdictsOf(findings), "no");
  for (const entry of asked.file?.models ?? []) {
    if (!serves(entry, asked.name, model)) continue;
    const kind = kindIn(findings);
    if (kind !== null && kind !== (entry.kind ?? "chat"))
      yield `${entry.id} is of the kind ${entry.kind ?? "chat"}, and the engine answers ${pathsIn(findings).join(" and ")}: set kind: ${kind} and its prices yourself.`;
    const wrong = (entry.capabilities ?? []).filter((name) => refused.includes(name));
    if (wrong.length > 0)
      yield `${entry.id} lists ${wrong.join(", ")}, and the engine has none of it: remove it yourself.`;
    if (!servesAlone(entry, asked.name, model))
      yield `${entry.id} has other upstreams too: check them, and add by hand what all of them can do.`;
  }
}
