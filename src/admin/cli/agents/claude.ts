/**
 * Starts Claude Code, which reads address and model from environment variables. It gets the token from a command, which
 * it runs again when the token is old.
 */
import { shellWord } from "../../management/shell-word.ts";
import { type Agent, optionIn } from "./agent.ts";

export const claude: Agent = {
  name: "claude",
  title: "Claude Code",
  install: "npm install -g @anthropic-ai/claude-code",
  modelIn: (words) => optionIn(words, ["--model"]),
  start({ access, model, tokenCommand, words, environment }) {
    const settings = { apiKeyHelper: tokenCommand.map(shellWord).join(" ") };
    const byCommand = access.kind === "person";
    return {
      words: [...(byCommand ? ["--settings", JSON.stringify(settings)] : []), ...words],
      environment: {
        ANTHROPIC_BASE_URL: access.url,
        ANTHROPIC_API_KEY: undefined,
        ANTHROPIC_AUTH_TOKEN: byCommand ? undefined : access.secret,
        ANTHROPIC_MODEL: model.id,
        // Without this variable, side requests, such as the one that makes a title, name a model of Anthropic.
        ANTHROPIC_DEFAULT_HAIKU_MODEL: environment.ANTHROPIC_DEFAULT_HAIKU_MODEL ?? model.id,
        ...(model.context_tokens === null ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(model.context_tokens) }),
      },
    };
  },
};
