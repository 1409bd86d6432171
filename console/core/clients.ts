/**
 * The blocks (commands and settings to copy) of docs/clients.md, filled in with an address, a model and its context
 * window. Pure.
 */

export interface Client {
  name: string;
  /** Where the block belongs, such as a file or a shell. */
  says: string;
  text: string;
}

interface Connecting {
  base: string;
  model: string;
  /** Whether the server has this model, as far as the reader may know. */
  isOffered: boolean;
  /** The model's context window; null: not known here. */
  context_tokens: number | null;
  /** Whether the reader signs in through an issuer. False: the reader signs in with a key. */
  isPerson: boolean;
}

/**
 * The model that the address of the page names, for the blocks. Somebody else may have written the address, so the
 * result is null if the model is not offered, or, if the offered models are unknown, if a shell could misread its name.
 */
export function modelNamed(named: string | null, offered: readonly string[] | null): string | null {
  if (named === null) return null;
  return (offered ? offered.includes(named) : /^[\w@.:/+-]+$/.test(named)) ? named : null;
}

export function clients({ base, model, isOffered, context_tokens, isPerson }: Connecting): Client[] {
  const window = (words: (tokens: number) => string) => (context_tokens === null ? "" : words(context_tokens));
  return [
    {
      name: "In a terminal",
      says: "signed in, with the model and its context window; no file is changed",
      text: `sluice login ${base}${isPerson ? "" : " --key"}
sluice claude${isOffered ? ` --model ${model}` : ""}`,
    },
    {
      name: "curl",
      says: "in a shell",
      text: `curl ${base}/v1/chat/completions \\
  -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
    },
    {
      name: "Codex",
      says: "~/.codex/config.toml",
      text: `model = "${model}"
model_provider = "sluice"${window((tokens) => `\nmodel_context_window = ${tokens}`)}

[model_providers.sluice]
name = "Sluice"
base_url = "${base}/v1"
env_key = "SLUICE_KEY"
wire_api = "responses"`,
    },
    {
      name: "Claude Code",
      says: "in a shell",
      text: `ANTHROPIC_BASE_URL=${base} ANTHROPIC_AUTH_TOKEN=$SLUICE_KEY ${window((tokens) => `CLAUDE_CODE_MAX_CONTEXT_TOKENS=${tokens} `)}claude --model ${model}`,
    },
    {
      name: "OpenAI SDK, TypeScript",
      says: "chat completions and Responses",
      text: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${base}/v1", apiKey: process.env.SLUICE_KEY });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0]?.message.content);`,
    },
    {
      name: "OpenAI SDK, Python",
      says: "chat completions and Responses",
      text: `import os
from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key=os.environ["SLUICE_KEY"])
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
    },
    {
      name: "Anthropic SDK, Python",
      says: "Messages: the address has no /v1",
      text: `import os
from anthropic import Anthropic

client = Anthropic(base_url="${base}", auth_token=os.environ["SLUICE_KEY"])
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`,
    },
  ];
}
