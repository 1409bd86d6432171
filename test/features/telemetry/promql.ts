// Extracts from a PromQL expression what is checked against the table of metrics: the names of metrics, their labels,
// and the label values.

export interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

const words = new Set(
  (
    "by on unless and or sum min max count avg rate increase histogram_quantile min_over_time max_over_time vector " +
    "last_over_time ignoring without bool"
  ).split(" "),
);

export function selectorsIn(expression: string): Selector[] {
  const bare = expression.replace(/\b(by|on|ignoring|without) \([^)]*\)/g, "");
  return [...bare.matchAll(/([a-z_:][a-z0-9_:]*)(?:\{([^}]*)\})?(?!\w*\()/gi)]
    .filter(([, name = ""]) => !words.has(name) && !/^[mhsd]$/.test(name))
    .map(([, metric = "", inside = ""]) => ({ metric, matchers: matchersIn(inside) }));
}

/** The labels by which an expression groups or matches. */
export function groupsIn(expression: string): string[] {
  return [...expression.matchAll(/\b(?:by|on|ignoring|without) \(([^)]*)\)/g)].flatMap(([, inside = ""]) =>
    inside.split(",").map((label) => label.trim()),
  );
}

function matchersIn(inside: string): Selector["matchers"] {
  return [...inside.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = "", operator = "", value = ""]) => ({
    ...{ label, operator, value },
  }));
}
