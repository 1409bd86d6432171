// Writes a sluice.yaml as JSON, which is valid YAML.

/** The target of a route: an upstream's name, or an upstream with the priority of its route. */
type RouteTo = string | { upstream: string; priority?: number };

/**
 * A sluice.yaml with these upstreams, by name, and these models, whose IDs are `acme/NAME`, with their routes. The
 * engines' name for a model is NAME.
 */
export function configOf(
  upstreams: Record<string, object>,
  models: Record<string, RouteTo[]>,
  { prices = { input: 0.1, output: 0.4 }, ...more }: { prices?: object } & Record<string, unknown> = {},
): string {
  const routeTo = (to: RouteTo, model: string) => ({ ...(typeof to === "string" ? { upstream: to } : to), model });
  const written = Object.entries(models).map(([name, routes]) => ({
    ...{ id: `acme/${name}`, created: 1790000000, context_window: 131072, prices },
    routes: routes.map((to) => routeTo(to, name)),
  }));
  return JSON.stringify({ metering: { currency: "USD" }, plans: { pro: {} }, upstreams, models: written, ...more });
}
