/** What a schema cannot say about sluice.yaml: names that must meet, and limits or routes that could match nothing. */
import { Check } from "typebox/value";
import { ChatCompletionRequest } from "../protocol/openai-chat/contract.ts";
import { checkedKey } from "./api-key.ts";
import { didYouMean } from "./closest.ts";
import { meteringLimits } from "./limits.ts";
import type { Problems } from "./problem.ts";
import type { Written } from "./read.ts";
import { Metering, Model, type ModelEntry, Upstream } from "./schema.ts";
import { simulatorName } from "./simulator.ts";
import { checkedUrl } from "./upstream-url.ts";

export interface CheckedFile {
  /** As the reader made it: whole where nothing was wrong, else with holes, which are passed over. */
  value: unknown;
  written: ReadonlyMap<string, Written>;
  /** SLUICE_UPSTREAM_URL serves every model, whatever the file says. */
  upstreamFromEnvironment: boolean;
}

export function checkFile(file: CheckedFile, problems: Problems): void {
  const sections = record(file.value);
  const add = (field: string, message: string) => problems.add(field, message, placeOf(file.written, field));
  const text = (field: string) => file.written.get(field)?.text ?? "";
  checkUpstreams(record(sections.upstreams), add);
  const names = Object.keys(record(sections.upstreams));
  if (Array.isArray(sections.models)) {
    checkModels(sections.models, [...names, simulatorName], add, text);
  } else if (names.length > 1 && !file.written.has("models") && !file.upstreamFromEnvironment) {
    add("upstreams", `are ${names.length}, and nothing says which of them serves which model; add models with routes`);
  }
  if (Check(Metering, sections.metering)) checkMetering(sections.metering, add);
}

type Add = (field: string, message: string) => void;

function checkUpstreams(upstreams: Record<string, unknown>, add: Add): void {
  for (const [name, entry] of Object.entries(upstreams)) {
    const field = `upstreams.${name}`;
    if (name === simulatorName) add(field, `'${simulatorName}' is the engine that is built in; choose another name`);
    if (!Check(Upstream, entry)) continue;
    const url = checkedUrl(entry.url);
    if ("problem" in url) add(`${field}.url`, url.problem);
    const key = entry.api_key === undefined ? null : checkedKey(entry.api_key);
    if (key && "problem" in key) add(`${field}.api_key`, key.problem);
  }
}

function checkModels(models: unknown[], upstreams: string[], add: Add, text: (field: string) => string): void {
  const ids = new Map<unknown, number>();
  models.forEach((entry, index) => {
    const field = `models[${index}]`;
    const { id } = record(entry);
    const first = ids.get(id);
    if (id !== undefined && first !== undefined) add(`${field}.id`, `is the id of models[${first}] already`);
    else ids.set(id, index);
    if (!Check(Model, entry)) return;
    checkAbilities(entry, field, add);
    checkRoutes(entry, field, upstreams, add, text);
  });
}

function checkAbilities(model: ModelEntry, field: string, add: Add): void {
  const { context_window, max_output_tokens = context_window, capabilities = [], extra_params = [] } = model;
  if (max_output_tokens > context_window) {
    add(`${field}.max_output_tokens`, `must be at most the context_window (${context_window})`);
  }
  if (capabilities.includes("parallel_tools") && !capabilities.includes("tools")) {
    add(`${field}.capabilities`, "has parallel_tools without tools; add tools");
  }
  extra_params.forEach((name, index) => {
    if (!Object.hasOwn(ChatCompletionRequest.properties, name)) return;
    add(`${field}.extra_params[${index}]`, "is a field of the contract, which every request may carry; remove it");
  });
}

function checkRoutes(model: ModelEntry, field: string, upstreams: string[], add: Add, text: (field: string) => string) {
  const seen = new Map<string, number>();
  model.routes.forEach((route, index) => {
    const here = `${field}.routes[${index}]`;
    if (!upstreams.includes(route.upstream)) {
      const written = text(`${here}.upstream`);
      const known = `; known are ${upstreams.join(", ")}`;
      add(`${here}.upstream`, `names no upstream of this file${didYouMean(written, upstreams) || known}`);
    }
    const key = JSON.stringify([route.upstream, route.model]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, index);
    else add(here, `leads where ${field}.routes[${first}] leads already; give that one more weight instead`);
  });
  if (model.routes.every((route) => route.weight === 0)) {
    add(`${field}.routes`, "all have weight 0, so no request could take one; give one of them a weight");
  }
}

function checkMetering({ lease_s = meteringLimits.lease_s.default, checkpoint_s = 0 }: Metering, add: Add): void {
  if (checkpoint_s < lease_s) return;
  add(
    "metering.checkpoint_s",
    `must be shorter than lease_s (${lease_s}), or every lease lapses between two checkpoints`,
  );
}

/** The place of the field itself, or of what it stands in. */
function placeOf(written: ReadonlyMap<string, Written>, field: string): Written["place"] {
  for (let path = field; path; path = path.replace(/(^|\.|\[)[^.[]*$/, "")) {
    const place = written.get(path)?.place;
    if (place) return place;
  }
  return null;
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
