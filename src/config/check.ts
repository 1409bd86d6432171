/** What a schema cannot say about sluice.yaml: names that must meet, and limits or routes that could match nothing. */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { Check } from "typebox/value";
import { ChatCompletionRequest } from "../protocol/openai-chat/contract.ts";
import type { Path } from "../schema/walk.ts";
import { checkedKey } from "./api-key.ts";
import { didYouMean } from "./diagnose.ts";
import { meteringLimits } from "./limits.ts";
import { fieldOf } from "./problem.ts";
import { Model, type ModelEntry } from "./schema/model.ts";
import { Metering } from "./schema/service.ts";
import { Upstream, type UpstreamEntry } from "./schema/upstream.ts";
import { simulatorName } from "./simulator.ts";
import { checkedUrl } from "./upstream-url.ts";

type Add = (path: Path, message: string) => void;

/** `value` may have holes where something was wrong; they are passed over. */
export function checkFile(value: unknown, upstreamFromEnvironment: boolean, add: Add): void {
  const { upstreams, models, metering } = record(value);
  checkUpstreams(record(upstreams), add);
  const names = Object.keys(record(upstreams));
  if (Array.isArray(models)) {
    checkModels(models, [...names, simulatorName], add);
  } else if (names.length > 1 && models === undefined && !upstreamFromEnvironment) {
    const message = `are ${names.length}, but without models it is unclear which model each one serves; add models with routes`;
    add(["upstreams"], message);
  }
  if (Check(Metering, metering)) checkMetering(metering, add);
}

function checkUpstreams(upstreams: Record<string, unknown>, add: Add): void {
  for (const [name, entry] of Object.entries(upstreams)) {
    const path = ["upstreams", name];
    if (name === simulatorName) add(path, `'${simulatorName}' is the name of the built-in engine; choose another name`);
    if (!Check(Upstream, entry)) continue;
    checkUrls(entry, path, add);
    checkResolve(entry, path, add);
    if (entry.cache_salt && entry.protocol === "anthropic-messages") {
      add([...path, "cache_salt"], "is no field of Messages; remove it, or let the engine speak another protocol");
    }
    for (const header of Object.keys(entry.headers ?? {})) {
      if (ownHeaders.has(header.toLowerCase())) add([...path, "headers", header], "is set by Sluice itself; remove it");
    }
    for (const [what, header] of Object.entries(entry.identity_headers ?? {})) {
      const problem = ownHeaders.has(header.toLowerCase()) ? "is set by Sluice itself; choose another header" : null;
      if (problem) add([...path, "identity_headers", what], problem);
    }
    const key = entry.api_key === undefined ? null : checkedKey(entry.api_key);
    if (key && "problem" in key) add([...path, "api_key"], key.problem);
  }
}

function checkUrls({ url, replicas = [] }: UpstreamEntry, path: Path, add: Add): void {
  const seen = new Set<string>();
  [url, ...replicas].forEach((text, index) => {
    const here = index === 0 ? [...path, "url"] : [...path, "replicas", index - 1];
    const read = checkedUrl(text);
    if ("problem" in read) add(here, read.problem);
    else if (seen.has(read.url)) add(here, "is there already; a replica is another engine");
    else seen.add(read.url);
  });
}

function checkResolve({ url, replicas = [], resolve }: UpstreamEntry, path: Path, add: Add): void {
  if (!resolve) return;
  const here = [...path, "resolve"];
  const read = checkedUrl(url);
  const host = "url" in read ? new URL(read.url).hostname : null;
  if (host !== null && isIP(host.replace(/^\[(.*)\]$/, "$1"))) {
    add(here, "needs a url with a name; this one has an address");
  }
  if (replicas.length > 0)
    add(here, "is beside replicas; the name's addresses are the replicas: remove one of the two");
  const seen = new Set<string>();
  resolve.servers?.forEach((server, index) => {
    if (!isServer(server)) {
      add(
        [...here, "servers", index],
        "must be an address, with or without a port, such as 10.0.0.10 or [fd00::10]:53",
      );
    } else if (seen.has(server)) add([...here, "servers", index], "is there already");
    seen.add(server);
  });
}

/** An address alone, or with a port: of IPv6 in brackets then. */
function isServer(text: string): boolean {
  if (isIP(text)) return true;
  const [, inBrackets, plain, port] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const isAddress = inBrackets === undefined ? isIPv4(plain ?? "") : isIPv6(inBrackets);
  return isAddress && Number(port) > 0 && Number(port) < 65_536;
}

const ownHeaders = new Set([
  ...["host", "content-length", "content-type", "transfer-encoding", "connection"],
  ...["accept-encoding", "expect", "te", "trailer", "upgrade"],
]);

function checkModels(models: unknown[], upstreams: string[], add: Add): void {
  const ids = new Map<unknown, number>();
  models.forEach((entry, index) => {
    const path = ["models", index];
    const { id } = record(entry);
    const first = ids.get(id);
    if (id !== undefined && first !== undefined) add([...path, "id"], `is already the id of models[${first}]`);
    else ids.set(id, index);
    if (!Check(Model, entry)) return;
    checkCapabilities(entry, path, add);
    checkRoutes(entry, path, upstreams, add);
  });
}

function checkCapabilities(model: ModelEntry, path: Path, add: Add): void {
  const { context_window, max_output_tokens = context_window, capabilities = [], extra_params = [] } = model;
  if (max_output_tokens > context_window) {
    add([...path, "max_output_tokens"], `must be at most the context_window (${context_window})`);
  }
  if (capabilities.includes("parallel_tools") && !capabilities.includes("tools")) {
    add([...path, "capabilities"], "has parallel_tools without tools; add tools");
  }
  extra_params.forEach((name, index) => {
    if (!Object.hasOwn(ChatCompletionRequest.properties, name)) return;
    add([...path, "extra_params", index], "is a field that every request may have; remove it");
  });
}

function checkRoutes(model: ModelEntry, path: Path, upstreams: string[], add: Add): void {
  const seen = new Map<string, number>();
  model.routes.forEach((route, index) => {
    const here = [...path, "routes", index];
    if (!upstreams.includes(route.upstream)) {
      const hint = didYouMean(route.upstream, upstreams) || `; known are ${upstreams.join(", ")}`;
      add([...here, "upstream"], `names no upstream of this file${hint}`);
    }
    if (route.context_window !== undefined && route.context_window > model.context_window) {
      add([...here, "context_window"], `must be at most the model's (${model.context_window})`);
    }
    const key = JSON.stringify([route.upstream, route.model]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, index);
    else add(here, `is the same as ${fieldOf([...path, "routes", first])}; increase the weight of that one instead`);
  });
  if (model.routes.every((route) => route.weight === 0)) {
    add([...path, "routes"], "all have weight 0, so no request could use them; give at least one a weight");
  }
}

function checkMetering({ lease_s = meteringLimits.lease_s.default, checkpoint_s = 0 }: Metering, add: Add): void {
  if (checkpoint_s < lease_s) return;
  add(["metering", "checkpoint_s"], `must be shorter than lease_s (${lease_s}), or leases lapse between checkpoints`);
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
