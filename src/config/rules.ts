/**
 * The rules of sluice.yaml that a schema cannot express: names that must exist, settings that depend on each other, and
 * routes that no request could use. Each rule has a name, and yields the path and the message of each problem.
 */
import { isIP, isIPv4, isIPv6 } from "node:net";
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { problemOfCurrency } from "../admin/store/amounts.ts";
import { whyNotExtra } from "../core/protocol/engine-fields.ts";
import { ChatCompletionRequest } from "../core/protocol/openai-chat/contract.ts";
import type { Path } from "../core/schema/walk.ts";
import { isZone } from "../core/time/written.ts";
import { checkedKey } from "./api-key.ts";
import { didYouMean } from "./diagnose.ts";
import { brokenIdentity, type IdentitySection } from "./identity.ts";
import { instantOf } from "./instant.ts";
import { mistakenNames } from "./model-names.ts";
import { type FoundProblems, fieldOf } from "./problem.ts";
import { record } from "./record.ts";
import { Model, type ModelEntry } from "./settings/model.ts";
import { filled, type Row, type Written } from "./settings/row.ts";
import { newPrices, sections } from "./settings/sections.ts";
import { Upstream, type UpstreamEntry } from "./settings/upstream.ts";
import { simulatorName } from "./simulator.ts";
import { checkedUrl } from "./upstream-url.ts";

/**
 * Yields a problem for each broken rule. `value` may have holes in place of parts with other problems; entries with
 * holes are skipped.
 */
export function* brokenRules(value: unknown, upstreamFromEnvironment: boolean): FoundProblems {
  const { upstreams, models, metering, identity, server, smtp } = record(value);
  const entries = Object.entries(record(upstreams));
  for (const [name, entry] of entries) {
    if (name === simulatorName)
      yield [["upstreams", name], `'${simulatorName}' is the name of the built-in engine; choose another name`];
    if (fits<UpstreamEntry>(Upstream, entry)) yield* broken(upstreamRules, entry, ["upstreams", name]);
  }
  const names = entries.map(([name]) => name);
  if (Array.isArray(models)) {
    yield* repeatedIds(models);
    yield* mistakenNames(models.map((model) => (fits<ModelEntry>(Model, model) ? model : null)));
    for (const [index, model] of models.entries())
      if (fits<ModelEntry>(Model, model))
        yield* broken(modelRules([...names, simulatorName], record(upstreams)), model, ["models", index]);
  } else if (names.length > 1 && models === undefined && !upstreamFromEnvironment) {
    const message = `are ${names.length}, but without models it is unclear which model each one serves; add models with routes`;
    yield [["upstreams"], message];
  }
  yield* pricesHaveACurrency(models, record(metering));
  if (fits<Metering>(sections.metering, metering)) yield* broken(meteringRules, metering, ["metering"]);
  if (fits<Server>(sections.server, server)) yield* broken(serverRules, server, ["server"]);
  if (fits<Smtp>(sections.smtp, smtp)) yield* broken(smtpRules, smtp, ["smtp"]);
  if (fits<IdentitySection>(sections.identity, identity))
    for (const [path, message] of brokenIdentity(identity)) yield [["identity", ...path], message];
}

export function fits<Value>(row: Row, value: unknown): value is Value {
  return Check(row as TSchema, value);
}

type Rules<Entry> = Record<string, (entry: Entry, path: Path) => FoundProblems>;

function* broken<Entry>(rules: Rules<Entry>, entry: Entry, path: Path): FoundProblems {
  for (const rule of Object.values(rules))
    for (const [below, message] of rule(entry, path)) yield [[...path, ...below], message];
}

function* pricesHaveACurrency(models: unknown, { currency }: Record<string, unknown>): FoundProblems {
  const problem = typeof currency === "string" ? problemOfCurrency(currency) : null;
  if (problem !== null) yield [["metering", "currency"], problem];
  const isPriced = Array.isArray(models) && models.some((model) => record(model).prices !== undefined);
  if (isPriced && currency === undefined)
    yield [
      ["metering", "currency"],
      `is missing: add metering: { currency: USD }, or the currency of your prices; ${newPrices}`,
    ];
}

type Metering = Written<typeof sections.metering.properties>;

const meteringRules: Rules<Metering> = {
  *zoneIsKnown({ calendar }) {
    if (calendar && !isZone(calendar.zone))
      yield [["calendar", "zone"], "must be a name of the IANA time zone database, such as Europe/Berlin"];
  },
  *checkpointsAreShorterThanTheLease({ lease_s, checkpoint_s = 0 }) {
    const lease = lease_s ?? filled(sections.metering.properties).lease_s;
    if (checkpoint_s >= lease)
      yield [["checkpoint_s"], `must be shorter than lease_s (${lease}), or leases lapse between checkpoints`];
  },
};

type Server = Written<typeof sections.server.properties>;

const serverRules: Rules<Server> = {
  *pausesAreWithinTheirBounds({ read_pause_ms_min = 0, read_pause_ms_max }) {
    const longest_ms = read_pause_ms_max ?? filled(sections.server.properties).read_pause_ms_max;
    if (read_pause_ms_min > longest_ms)
      yield [["read_pause_ms_min"], `must not be more than read_pause_ms_max (${longest_ms})`];
  },
};

type Smtp = Written<typeof sections.smtp.properties>;

const smtpRules: Rules<Smtp> = {
  *aUserHasAPassword({ user, password }) {
    if (user !== undefined && password === undefined) yield [["user"], "needs password; add it"];
    if (password !== undefined && user === undefined) yield [["password"], "needs user; add it"];
  },
  *aPasswordIsSentEncrypted({ tls, host, password }) {
    if (tls === "off" && password !== undefined && !/^(localhost|127(\.\d+){3}|::1)$/.test(host))
      yield [["tls"], "is off, and the password would be sent in plain text; use starttls or implicit"];
  },
};

/** Headers that Sluice sets itself, so that a configuration must not. */
const ownHeaders = new Set([
  ...["host", "content-length", "content-type", "transfer-encoding", "connection"],
  ...["accept-encoding", "expect", "te", "trailer", "upgrade"],
]);

const upstreamRules: Rules<UpstreamEntry> = {
  *urlsAreUsableAndDiffer({ url, replicas = [] }) {
    const seen = new Set<string>();
    for (const [index, text] of [url, ...replicas].entries()) {
      const path = index === 0 ? ["url"] : ["replicas", index - 1];
      const checked = checkedUrl(text);
      if ("problem" in checked) yield [path, checked.problem];
      else if (seen.has(checked.url)) yield [path, "is there already; a replica is another engine"];
      else seen.add(checked.url);
    }
  },
  *aResolvedUrlHasAName({ url, replicas = [], resolve }) {
    const checked = checkedUrl(url);
    const host = "url" in checked ? new URL(checked.url).hostname : null;
    if (resolve && host !== null && isIP(host.replace(/^\[(.*)\]$/, "$1")))
      yield [["resolve"], "needs a url with a name; this one has an address"];
    if (resolve && replicas.length > 0)
      yield [["resolve"], "is beside replicas; the name's addresses are the replicas: remove one of the two"];
  },
  *dnsServersAreAddressesAndDiffer({ resolve }) {
    const seen = new Set<string>();
    for (const [index, server] of (resolve?.servers ?? []).entries()) {
      const path = ["resolve", "servers", index];
      if (!isServer(server))
        yield [path, "must be an address, with or without a port, such as 10.0.0.10 or [fd00::10]:53"];
      else if (seen.has(server)) yield [path, "is there already"];
      seen.add(server);
    }
  },
  *messagesHasNoCacheSalt({ cache_salt, protocol }) {
    if (cache_salt && protocol === "anthropic-messages")
      yield [["cache_salt"], "is no field of Messages; remove it, or let the engine speak another protocol"];
  },
  *headersAreNotOurs({ headers = {}, identity_headers = {} }) {
    for (const name of Object.keys(headers))
      if (ownHeaders.has(name.toLowerCase())) yield [["headers", name], "is set by Sluice itself; remove it"];
    for (const [field, name] of Object.entries(identity_headers))
      if (ownHeaders.has(name.toLowerCase()))
        yield [["identity_headers", field], "is set by Sluice itself; choose another header"];
  },
  *headersDiffer({ headers = {} }) {
    const seen = new Set<string>();
    for (const name of Object.keys(headers)) {
      if (seen.has(name.toLowerCase())) yield [["headers", name], "is there already, in other capitals; remove one"];
      seen.add(name.toLowerCase());
    }
  },
  *onlyChatEnginesCountAsTheyGo({ running_usage = "off", protocol = "openai-chat" }) {
    if (running_usage !== "off" && protocol !== "openai-chat")
      yield [["running_usage"], `needs an engine that speaks openai-chat, and this one speaks ${protocol}; remove it`];
  },
  *prioritiesHaveAHeader({ priorities, identity_headers }) {
    if (priorities && identity_headers?.priority === undefined)
      yield [["priorities"], "needs identity_headers.priority, the header that the engine reads; add it"];
    if (!priorities && identity_headers?.priority !== undefined)
      yield [["identity_headers", "priority"], "needs priorities, the number of each plan; add it"];
  },
  *aSharedLimitIsOfRequests({ scope, tokens_in_flight_max }) {
    if (scope === "fleet" && tokens_in_flight_max !== undefined)
      yield [["scope"], `is fleet, which counts requests and not tokens; remove tokens_in_flight_max, or scope`];
  },
  *theKeyFitsIntoAHeader({ api_key }) {
    const checked = api_key === undefined ? null : checkedKey(api_key);
    if (checked && "problem" in checked) yield [["api_key"], checked.problem];
  },
};

/** Whether the text is an address, alone or with a port. An IPv6 address with a port is in brackets. */
function isServer(text: string): boolean {
  if (isIP(text)) return true;
  const [, inBrackets, plain, port] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const isAddress = inBrackets === undefined ? isIPv4(plain ?? "") : isIPv6(inBrackets);
  return isAddress && Number(port) > 0 && Number(port) < 65_536;
}

function* repeatedIds(models: unknown[]): FoundProblems {
  const firsts = new Map<unknown, number>();
  for (const [index, model] of models.entries()) {
    const { id } = record(model);
    const first = firsts.get(id);
    if (first === undefined) firsts.set(id, index);
    else if (id !== undefined) yield [["models", index, "id"], `is already the id of models[${first}]`];
  }
}

const modelRules = (upstreams: string[], entries: Record<string, unknown>): Rules<ModelEntry> => ({
  *onlyChatEnginesGoOn({ routes, kind = "chat" }) {
    for (const [index, route] of routes.entries()) {
      if (route.continue && kind !== "chat")
        yield [["routes", index, "continue"], `is for models of the kind chat; remove it`];
      const { protocol = "openai-chat" } = record(entries[route.upstream]);
      if (route.continue && protocol !== "openai-chat")
        yield [
          ["routes", index, "continue"],
          `needs an engine that speaks openai-chat, and '${route.upstream}' speaks ${protocol}; remove it`,
        ];
    }
  },
  *aSharedLimitIsOfRequests({ routes }) {
    for (const [index, route] of routes.entries())
      if (record(entries[route.upstream]).scope === "fleet" && route.tokens_in_flight_max !== undefined)
        yield [
          ["routes", index, "tokens_in_flight_max"],
          `is for an engine with scope: fleet, which counts requests and not tokens; remove it`,
        ];
  },
  *anAnswerFitsTheContext({ context_window, max_output_tokens = 0 }) {
    if (max_output_tokens > context_window)
      yield [["max_output_tokens"], `must be at most the context_window (${context_window})`];
  },
  *onlyAnswersOfTextHaveAPrice({ kind = "chat", prices }) {
    const makesText = kind === "chat" || kind === "completion";
    if (makesText && prices.output === undefined) yield [["prices"], "needs output; add it"];
    if (kind !== "rerank" && prices.search !== undefined)
      yield [["prices", "search"], `is for models of the kind rerank; remove it`];
    if (!makesText && prices.output !== undefined)
      yield [["prices", "output"], `is a price of text, and a model of the kind ${kind} writes none; remove it`];
  },
  *whatFollowsARetirementNeedsOne({ retires_at, deprecated_at, replaced_by, redirect }) {
    const instants = Object.entries({ deprecated_at, retires_at });
    for (const [name, written] of instants)
      if (written !== undefined && instantOf(written) === null) yield [[name], "is a day or a time that there is not"];
    for (const [name, value] of Object.entries({ deprecated_at, replaced_by }))
      if (value !== undefined && retires_at === undefined) yield [[name], "needs retires_at; add it"];
    if (redirect && replaced_by === undefined) yield [["redirect"], "needs replaced_by; add it"];
    if (retires_at !== undefined && (instantOf(deprecated_at ?? "") ?? 0) > (instantOf(retires_at) ?? Infinity))
      yield [["deprecated_at"], `must not be after retires_at (${retires_at})`];
  },
  *parallelToolsAreTools({ capabilities = [] }) {
    if (capabilities.includes("parallel_tools") && !capabilities.includes("tools"))
      yield [["capabilities"], "has parallel_tools without tools; add tools"];
  },
  *extraParamsAreExtra({ extra_params = [] }) {
    for (const [index, name] of extra_params.entries()) {
      const isOfAll = Object.hasOwn(ChatCompletionRequest.properties, name);
      const why = isOfAll ? "is a field that every request may have" : whyNotExtra(name);
      if (why) yield [["extra_params", index], isOfAll ? `${why}; remove it` : `is '${name}', which ${why}; remove it`];
    }
  },
  *routesLeadToUpstreams({ routes }) {
    for (const [index, { upstream }] of routes.entries()) {
      const hint = didYouMean(upstream, upstreams) || `; known are ${upstreams.join(", ")}`;
      if (!upstreams.includes(upstream)) yield [["routes", index, "upstream"], `names no upstream of this file${hint}`];
    }
  },
  *routesFitTheContext({ routes, context_window: whole }) {
    for (const [index, { context_window = 0 }] of routes.entries())
      if (context_window > whole) yield [["routes", index, "context_window"], `must be at most the model's (${whole})`];
  },
  *routesDiffer({ routes }, path) {
    const firsts = new Map<string, number>();
    for (const [index, { upstream, model }] of routes.entries()) {
      const key = JSON.stringify([upstream, model]);
      const first = firsts.get(key);
      if (first === undefined) firsts.set(key, index);
      else {
        const other = fieldOf([...path, "routes", first]);
        yield [["routes", index], `is the same as ${other}; increase the weight of that one instead`];
      }
    }
  },
  *someRouteHasWeight({ routes }) {
    if (routes.every(({ weight }) => weight === 0))
      yield [["routes"], "all have weight 0, so no request could use them; give at least one a weight"];
  },
});
