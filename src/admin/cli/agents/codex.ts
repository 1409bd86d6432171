/** Starts Codex: settings on its command line define a provider, whose token a command prints. */
import { type Agent, optionIn } from "./agent.ts";

export const codex: Agent = {
  name: "codex",
  title: "Codex",
  install: "npm install -g @openai/codex",
  modelIn: (words) => optionIn(words, ["--model", "-m"]),
  start({ access, model, tokenCommand: [command, ...words_], words }) {
    const auth =
      access.kind === "person"
        ? `auth = { command = ${text(command)}, args = [${words_.map(text).join(", ")}] }`
        : 'env_key = "SLUICE_KEY"';
    const provider = `{ name = "Sluice", base_url = ${text(`${access.url}/v1`)}, wire_api = "responses", ${auth} }`;
    const settings = {
      model_provider: text("sluice"),
      "model_providers.sluice": provider,
      model: text(model.id),
      ...(model.context_tokens === null ? {} : { model_context_window: String(model.context_tokens) }),
    };
    return {
      words: [...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]), ...words],
      environment: access.kind === "person" ? {} : { SLUICE_KEY: access.secret },
    };
  },
};

/** A text as a TOML string. TOML has all escapes that JSON.stringify writes. */
const text = (value: string) => JSON.stringify(value);
