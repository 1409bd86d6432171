/**
 * The contexts that Ollama serves. Ollama's own setting (OLLAMA_CONTEXT_LENGTH, or 4,096 tokens on a small GPU) decides
 * them, not the model, and Ollama cuts off the beginning of a longer prompt without an error.
 */
import { type Ask, type EngineModel, firstCount } from "./engine.ts";
import { record } from "./record.ts";

/**
 * The models, where each one that Ollama has loaded has the context that Ollama serves. Other models stay as they are.
 */
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
