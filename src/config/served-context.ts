/**
 * The contexts that Ollama serves. They are its own setting (OLLAMA_CONTEXT_LENGTH, or 4,096 tokens on a small GPU), not
 * the models', and it cuts off the front of a longer prompt without a word.
 */
import { type Ask, type EngineModel, firstCount } from "./engine.ts";
import { record } from "./record.ts";

/** The models with the contexts that are served of those that Ollama has loaded. Others stay as they are. */
export async function withServedContexts(
  models: readonly EngineModel[],
  url: string,
  ask: Ask,
): Promise<EngineModel[]> {
  if (!models.some(({ isOwnContext }) => isOwnContext)) return [...models];
  const { models: running } = record((await ask(`${url.replace(/\/v1$/, "")}/api/ps`)).body);
  const loaded = Array.isArray(running) ? running.map(record) : [];
  return models.map((model) => {
    const served = firstCount(loaded.find(({ name }) => name === model.name)?.context_length);
    if (served === null) return model;
    return { ...model, contextTokens: Math.min(served, model.contextTokens ?? served), isOwnContext: false };
  });
}
