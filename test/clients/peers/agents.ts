// Claude Code and Codex through a gateway: each reads two files by two calls at once, and answers.
import { strict as assert } from "node:assert";
import { runAgent as runClaude } from "../claude-code/agent.ts";
import { runAgent as runCodex } from "../codex/agent.ts";
import type { Gateway } from "./gateways.ts";

const files = { "one.txt": "the word is apple\n", "two.txt": "the word is pear\n" };

export const agentChecks: Record<string, (gateway: Gateway) => Promise<void>> = {
  async "Claude Code, two tools at once"({ url, key, model, headers }) {
    const call = (folder: string, name: string) =>
      `call=Read:${btoa(JSON.stringify({ file_path: `${folder}/${name}` }))}`;
    const done = await runClaude({
      url,
      model,
      files,
      prompt: (folder) =>
        `Read both files. [simulator: ${Object.keys(files)
          .map((name) => call(folder, name))
          .join(" ")}]`,
      env: {
        ANTHROPIC_AUTH_TOKEN: key,
        CLAUDE_CODE_MAX_RETRIES: "1",
        ANTHROPIC_CUSTOM_HEADERS: lines(headers),
      },
    });
    assert.ok(!done.failed, done.result);
    bothIn(done.result);
  },
  async "Codex, two tools at once"({ url, key, model, headers }) {
    const call = (name: string) => `call=exec_command:${btoa(JSON.stringify({ cmd: `cat ${name}` }))}`;
    const done = await runCodex({
      url,
      key,
      model,
      files,
      provider: `http_headers = { ${Object.entries(headers)
        .map(([name, value]) => `"${name}" = "${value}"`)
        .join(", ")} }\nrequest_max_retries = 0\nstream_max_retries = 0`,
      prompt: `Read both files. [simulator: ${Object.keys(files).map(call).join(" ")}]`,
    });
    assert.equal(done.code, 0, done.errors);
    bothIn(done.answer);
  },
};

const lines = (headers: Record<string, string>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

function bothIn(text: string): void {
  for (const word of ["apple", "pear"]) assert.ok(text.includes(word), `no ${word} in: ${text.slice(0, 300)}`);
}
