/**
 * Starts opencode: the provider is defined in an environment variable, which opencode reads in addition to its
 * configuration files.
 */
import { type Agent, optionIn } from "./agent.ts";

const provider = "sluice";
const token_variable = "SLUICE_TOKEN";

export const opencode: Agent = {
  name: "opencode",
  title: "opencode",
  install: "npm install -g opencode-ai",
  modelIn(words) {
    const typed = optionIn(words, ["--model", "-m"]);
    return typed?.startsWith(`${provider}/`) ? typed.slice(provider.length + 1) : null;
  },
  start({ access, model, models, words }) {
    const options = { baseURL: `${access.url}/v1`, apiKey: `{env:${token_variable}}` };
    const listed = models.map(({ id, context_tokens }) => [
      id,
      { name: id, ...(context_tokens === null ? {} : { limit: { context: context_tokens, output: output_tokens } }) },
    ]);
    const configuration = {
      provider: {
        [provider]: {
          npm: "@ai-sdk/openai-compatible",
          name: "Sluice",
          options,
          models: Object.fromEntries(listed),
        },
      },
      model: `${provider}/${model.id}`,
      small_model: `${provider}/${model.id}`,
    };
    return {
      words: [...words],
      environment: { OPENCODE_CONFIG_CONTENT: JSON.stringify(configuration), [token_variable]: access.secret },
    };
  },
};

/** The largest number of output tokens that opencode requests of any model. */
const output_tokens = 32_000;
