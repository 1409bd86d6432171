/** The words that would identify an engine in a log: its address, and its own names of models. Pure. */
import type { Configuration } from "./configuration.ts";

/** Shorter names are not hidden, because they occur inside ordinary words. */
const name_chars_min = 4;

/** The words that would identify an engine. Longer words come first, so that none is cut by a shorter one inside it. */
export function engineNames({ upstreams, catalog }: Configuration): string[] {
  const addresses = upstreams.flatMap(({ url }) => {
    const { host, hostname } = new URL(url);
    return [url, host, hostname];
  });
  const models = [...catalog.models.values()].flatMap(({ id, routes }) =>
    routes.map(({ model }) => model).filter((model) => model !== id),
  );
  return [...new Set([...addresses, ...models])]
    .filter((word) => word.length >= name_chars_min)
    .sort((one, other) => other.length - one.length);
}
