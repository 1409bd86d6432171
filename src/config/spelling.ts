/**
 * Asks an engine how it spells the models of the default catalog, if nobody wrote its names for them: engines compare
 * names exactly, and public ids are in small letters.
 */
import { isDeepStrictEqual } from "node:util";
import type { Upstream } from "../core/upstream/target.ts";
import type { Configuration, NamesFrom } from "./configuration.ts";
import { asker, type EngineReply, type Fetch, fetchAs, modelsOf, notReady } from "./engine.ts";

/** The longest time that a start or a reload waits for the list. */
const list_ms = 3_000;

/**
 * The configuration with the engine's own names for the models, or with a notice that they are not known. Replicas are
 * asked together: the first one that lists models counts. If none does, they are to be asked again, and are meanwhile
 * asked by the names of `before`, the configuration in force, if it has one of these engines.
 */
export async function asSpelled(
  configuration: Configuration,
  fetch: Fetch,
  before: Configuration = configuration,
): Promise<Configuration> {
  const { namesFrom } = configuration;
  if (!namesFrom) return configuration;
  const { engines } = namesFrom;
  const replies = await Promise.all(engines.map((engine) => listOf(engine, fetch)));
  const listed = replies.map(namesIn).find((names) => names.length > 0);
  const others = configuration.notices.filter((notice) => !notice.startsWith(awaited));
  if (listed) return spelledAs(listed, { ...configuration, notices: others }, false);
  const whys = replies.map((reply, at) =>
    at === 0 ? whyUnlisted(reply) : `${engines[at]!.url}: ${whyUnlisted(reply)}`,
  );
  const notices = [...others, `${awaited}: ${whys.join(", ")}; ${meanwhile}`];
  const known = listedBefore(namesFrom, before.namesFrom);
  if (configuration === before && isDeepStrictEqual(notices, configuration.notices)) return configuration;
  return spelledAs(known, { ...configuration, notices }, true);
}

function listOf(engine: Upstream, fetch: Fetch): Promise<EngineReply> {
  return asker(engine.apiKey, fetchAs(engine, fetch), engine.protocol, list_ms)(`${engine.url}/models`);
}

const namesIn = ({ body }: EngineReply) => (modelsOf(body) ?? []).map(({ name }) => name);

/** The names that these engines listed for the configuration in force, if it has one of them. */
function listedBefore({ engines }: NamesFrom, before: NamesFrom | undefined): readonly string[] {
  const isSame = (one: Upstream) => engines.some(({ name, url }) => name === one.name && url === one.url);
  return before?.engines.some(isSame) ? before.listed : [];
}

/** Puts the listed names into the routes, in the place of public ids or of earlier names. */
function spelledAs(listed: readonly string[], configuration: Configuration, isAwaited: boolean): Configuration {
  const { catalog, notices } = configuration;
  const spelling = spellingOf(listed);
  const isUnknown = listed.length > 0 && [...catalog.models.keys()].every((id) => spelling(id) === null);
  const models = [...catalog.models.values()].map((model) => ({
    ...model,
    routes: model.routes.map((route) => ({ ...route, model: spelling(model.id) ?? model.id })),
  }));
  return {
    ...configuration,
    namesFrom: { engines: configuration.namesFrom!.engines, listed, isAwaited },
    notices: isUnknown ? [...notices.filter((notice) => notice !== otherNames), otherNames] : notices,
    catalog: { ...catalog, models: new Map(models.map((model) => [model.id, model])) },
  };
}

/** Returns the engine's name for a public id, or null. If the engine lists a single model, every id stands for it. */
function spellingOf(names: readonly string[]): (id: string) => string | null {
  if (names.length === 1) return () => names[0]!;
  const bySmall = new Map(names.map((name) => [name.toLowerCase(), name]));
  return (id) => (names.includes(id) ? id : (bySmall.get(id) ?? null));
}

const advice = "set SLUICE_UPSTREAM_MODEL to one of its names, or write its models into sluice.yaml (sluice init)";
const otherNames = `the engine lists several models, and none by a name of the catalog: ${advice}`;
const awaited = "the engine does not say yet how it calls its models";
const meanwhile = `until it does, it is asked for them by the names that it listed before, else by their public ids, and again for its names: if it has others, ${advice}`;

/** The reason for which no name is known, with what to do about it if that is known. */
function whyUnlisted({ status, body }: EngineReply): string {
  if (status === null) return "it does not answer: start it";
  if (status === 401 || status === 403)
    return `it refuses the key (${status}): correct SLUICE_UPSTREAM_KEY, or its api_key in sluice.yaml`;
  if (modelsOf(body)) return "it lists no models: load one";
  return notReady(status) ?? `it answered ${status} without a list of models`;
}
