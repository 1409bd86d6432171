// Writes entries of the list `models` in sluice.yaml.

import type { ModelKind } from "../../../src/core/inference/model.ts";

/** The entry of a model at an upstream, with `fields` in place of the usual ones. It begins with a line break. */
export function modelEntry(id: string, kind: ModelKind, upstream: string, fields: object = {}): string {
  const usual = { created: 1790000000, context_window: 8192, prices: { input: 0.1 } };
  const entry = { id, kind, ...usual, routes: [{ upstream, model: "m" }], ...fields };
  return `\n  - ${JSON.stringify(entry)}`;
}
