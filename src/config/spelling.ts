/**
 * Asks an engine how it spells the models of the default catalog, if nobody wrote its names for them: engines compare
 * names exactly, and public ids are in small letters.
 */
import { compact } from "../core/protocol/json.ts";
import type { Configuration } from "./configuration.ts";
import { asker, type EngineReply, type Fetch, fetchAs, modelsOf, notReady } from "./engine.ts";

/** The longest time that a start or a reload waits for the list. */
const list_ms = 3_000;

/**
 * The configuration with the engine's own names for the models, or with a notice that they are not known. It keeps
 * `namesFrom` if the engine is to be asked again, because it lists no models yet.
 */
export async function asSpelled(configuration: Configuration, fetch: Fetch): Promise<Configuration> {
  const { namesFrom, catalog } = configuration;
  if (!namesFrom) return configuration;
  const notices = configuration.notices.filter((notice) => !notice.startsWith(awaited));
  const ask = asker(namesFrom.apiKey, fetchAs(namesFrom, fetch), namesFrom.protocol, list_ms);
  const reply = await ask(`${namesFrom.url}/models`);
  const listed = modelsOf(reply.body) ?? [];
  if (listed.length === 0) {
    const notice = `${awaited}: ${whyUnlisted(reply)}; ${meanwhile}`;
    return configuration.notices.includes(notice) ? configuration : { ...configuration, notices: [...notices, notice] };
  }
  const spelling = spellingOf(listed.map(({ name }) => name));
  const isKnown = [...catalog.models.keys()].some((id) => spelling(id) !== null);
  const { namesFrom: _, ...asked } = { ...configuration, notices };
  if (!isKnown) return { ...asked, notices: [...notices, otherNames] };
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
const awaited = "the engine does not say yet how it calls its models";
const meanwhile = `until it does, it is asked for them by their public ids, and again for its names: if it has others, ${advice}`;

/** The reason for which no name is known, with what to do about it if that is known. */
function whyUnlisted({ status, body }: EngineReply): string {
  if (status === null) return "it does not answer: start it";
  if (status === 401 || status === 403)
    return `it refuses the key (${status}): correct SLUICE_UPSTREAM_KEY, or its api_key in sluice.yaml`;
  if (modelsOf(body)) return "it lists no models: load one";
  return notReady(status) ?? `it answered ${status} without a list of models`;
}
