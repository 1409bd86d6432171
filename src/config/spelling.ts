/**
 * Asks an engine how it spells the models of the default catalog, if nobody wrote its names for them: engines compare
 * names exactly, and public ids are in small letters.
 */
import { compact } from "../core/protocol/json.ts";
import type { Configuration } from "./configuration.ts";
import { asker, type Fetch, fetchAs, modelsOf, notReady } from "./engine.ts";

/** The longest time that a start or a reload waits for the list. */
const list_ms = 3_000;

/**
 * The configuration with the engine's own names for the models, or with a notice that they are not known. It keeps
 * `namesFrom` if the engine is to be asked again, because it does not run yet.
 */
export async function asSpelled(configuration: Configuration, fetch: Fetch): Promise<Configuration> {
  const { namesFrom, catalog } = configuration;
  if (!namesFrom) return configuration;
  const notices = configuration.notices.filter((notice) => notice !== awaited);
  const ask = asker(namesFrom.apiKey, fetchAs(namesFrom, fetch), namesFrom.protocol, list_ms);
  const { status, body } = await ask(`${namesFrom.url}/models`);
  if (status === null || notReady(status) !== null)
    return configuration.notices.includes(awaited)
      ? configuration
      : { ...configuration, notices: [...notices, awaited] };
  const listed = modelsOf(body) ?? [];
  const spelling = spellingOf(listed.map(({ name }) => name));
  const isKnown = [...catalog.models.keys()].some((id) => spelling(id) !== null);
  const { namesFrom: _, ...asked } = { ...configuration, notices };
  if (!isKnown) return { ...asked, notices: [...notices, listed.length > 0 ? otherNames : unlisted] };
  const models = [...catalog.models.values()].map((model) => ({
    ...model,
    routes: model.routes.map((route) => ({ ...route, ...compact({ model: spelling(model.id) ?? undefined }) })),
  }));
  return { ...asked, catalog: { ...catalog, models: new Map(models.map((model) => [model.id, model])) } };
}

/** Returns the engine's name for a public id, or null. An engine of one model is meant by every id. */
function spellingOf(names: readonly string[]): (id: string) => string | null {
  if (names.length === 1) return () => names[0]!;
  const bySmall = new Map(names.map((name) => [name.toLowerCase(), name]));
  return (id) => (names.includes(id) ? id : (bySmall.get(id) ?? null));
}

const advice = "set SLUICE_UPSTREAM_MODEL to one of its names, or write its models into sluice.yaml (sluice init)";
const otherNames = `the engine lists several models, and none by a name of the catalog: ${advice}`;
const unlisted = `the engine lists no models, so it is asked for them by their public ids: if it knows others, ${advice}`;
const awaited = `the engine does not say yet how it calls its models; until it does, it is asked for them by their public ids: start it, or ${advice}`;
