/**
 * Asks an engine how it spells the models of the default catalog, if nobody wrote its names for them: engines compare
 * names exactly, and public ids are in small letters.
 */
import { compact } from "../core/protocol/json.ts";
import type { Configuration } from "./configuration.ts";
import { asker, type Fetch, fetchAs, modelsOf } from "./engine.ts";

/** The longest time that a start or a reload waits for the list. */
const list_ms = 3_000;

/** The configuration with the engine's own names for the models, or with a notice that they are not known. */
export async function asSpelled(configuration: Configuration, fetch: Fetch): Promise<Configuration> {
  const { namesFrom, catalog, notices } = configuration;
  if (!namesFrom) return configuration;
  const ask = asker(namesFrom.apiKey, fetchAs(namesFrom, fetch), namesFrom.protocol, list_ms);
  const listed = modelsOf((await ask(`${namesFrom.url}/models`)).body) ?? [];
  const spelling = spellingOf(listed.map(({ name }) => name));
  const isKnown = [...catalog.models.keys()].some((id) => spelling(id) !== null);
  if (!isKnown) return { ...configuration, notices: [...notices, listed.length > 0 ? otherNames : unlisted] };
  const models = [...catalog.models.values()].map((model) => ({
    ...model,
    routes: model.routes.map((route) => ({ ...route, ...compact({ model: spelling(model.id) ?? undefined }) })),
  }));
  return { ...configuration, catalog: { ...catalog, models: new Map(models.map((model) => [model.id, model])) } };
}

/** Returns the engine's name for a public id, or null. An engine of one model is meant by every id. */
function spellingOf(names: readonly string[]): (id: string) => string | null {
  if (names.length === 1) return () => names[0]!;
  const bySmall = new Map(names.map((name) => [name.toLowerCase(), name]));
  return (id) => (names.includes(id) ? id : (bySmall.get(id) ?? null));
}

const advice = "set SLUICE_UPSTREAM_MODEL to one of its names, or write its models into sluice.yaml (sluice init)";
const otherNames = `the engine lists several models, and none by a name of the catalog: ${advice}`;
const unlisted = `the engine did not list its models, so it is asked for them by their public ids: start it and reload (SIGHUP); or ${advice}`;
