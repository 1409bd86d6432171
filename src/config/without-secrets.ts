/**
 * The configuration in a form that may be shown. Only the settings that are listed here are in it, so that no secret
 * can get out. Pure.
 */

import type { ShownConfiguration } from "../admin/management/configuration-shape.ts";
import type { Issuer, Rule } from "../core/auth/identity.ts";
import { type Currency, priceOfMillion } from "../core/inference/money.ts";
import type { CatalogModel } from "../core/routing/catalog.ts";
import type { Upstream } from "../core/upstream/target.ts";
import type { Configuration } from "./configuration.ts";
import { configurationHash } from "./hash.ts";

const sections = [
  ...(["metering", "limits", "messages", "responses", "answers", "reload", "log", "metrics"] as const),
  ...(["images", "reports", "webhooks"] as const),
];

export function shownConfiguration(configuration: Configuration): ShownConfiguration {
  const { catalog, identity, notices, server, smtp, storage, upstreams } = configuration;
  return {
    hash: configurationHash(configuration),
    settings: Object.fromEntries(sections.map((name) => [name, configuration[name]])),
    server: {
      host: server.host,
      port: server.port,
      operatorPort: server.operator?.port ?? null,
      consolePort: server.console?.port ?? null,
      workers: server.workers,
      hasTls: server.tls !== undefined,
      trustedProxies: [...server.trustedProxies],
    },
    storage: {
      database: storage.databaseUrl === null ? "embedded" : "postgres",
      hasRedis: storage.redisUrl !== null,
    },
    models: [...catalog.models.values()].map((model) => modelShown(model, configuration.metering.currency)),
    upstreams: upstreams.map(upstreamShown),
    identity: identity && {
      serviceUrl: identity.serviceUrl,
      consoleUrl: identity.consoleUrl,
      issuers: identity.issuers.map(issuerShown),
      rules: identity.rules.map(ruleShown),
    },
    smtp: smtp && {
      host: smtp.host,
      port: smtp.port ?? null,
      tls: smtp.tls,
      user: smtp.user ?? null,
      hasPassword: smtp.password !== undefined,
      from: smtp.from,
      fromName: smtp.from_name,
      recipientDomains: [...smtp.recipient_domains],
    },
    notices: [...notices],
  };
}

function modelShown(model: CatalogModel, currency: Currency) {
  const { id, kind = "chat", aliases = [], contextTokens, outputTokens_max, capabilities } = model;
  const { prices, retirement, routes } = model;
  const { input, cachedInput, cacheWrite, output, search } = prices;
  const price = (picos: number) => priceOfMillion(picos, currency);
  return {
    id,
    kind,
    aliases: [...aliases],
    contextTokens,
    outputTokensLimit: outputTokens_max,
    capabilities: [...capabilities],
    prices: {
      input: price(input),
      cachedInput: price(cachedInput),
      cacheWrite: price(cacheWrite),
      output: price(output),
      ...(search !== undefined && { search: price(search / 1000) }),
    },
    retiresAt: retirement ? new Date(retirement.at_ms) : null,
    replacedBy: retirement?.replacedBy ?? null,
    routes: routes.map(({ upstream, model, priority, weight }) => ({
      upstream: upstream.name,
      model,
      priority,
      weight,
    })),
  };
}

/** The public settings of an upstream. Its URL's query is left out, because it may have a key. */
function upstreamShown({ name, url, protocol, apiKey, headers = {}, timeouts, capacity, check, load }: Upstream) {
  const { origin, pathname } = new URL(url);
  return {
    name,
    url: origin + pathname,
    protocol,
    hasKey: apiKey !== null,
    headers: Object.keys(headers),
    settings: { timeouts, ...(capacity && { capacity }), ...(check && { check }), ...(load && { load }) },
  };
}

function issuerShown({ issuer, clientId, clientSecret, audiences }: Issuer) {
  return { issuer, clientId, hasClientSecret: clientSecret !== null, audiences: [...audiences] };
}

function ruleShown({ issuer, claim, wanted, role, kind, organization, team, scopes, models }: Rule) {
  return { ...(issuer === null ? {} : { issuer }), claim, ...wanted, role, kind, organization, team, scopes, models };
}
