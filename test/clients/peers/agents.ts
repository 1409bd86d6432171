// Checks of Claude Code and Codex through a gateway: each agent reads two files by two tool calls in one turn, and
// prints their contents.
import { strict as assert } from "node:assert";
import { runAgent as runClaude } from "../claude-code/agent.ts";
import { runAgent as runCodex } from "../codex/agent.ts";
import type { ScriptedEngine } from "../scripted-engine.ts";
import type { Gateway } from "./gateways.ts";

const files = { "one.txt": "the word is apple\n", "two.txt": "the word is pear\n" };

/**
 * A check of an agent behind a gateway. `engine` is the engine behind the gateway. It follows a script instead of
 * directives in the prompt, because gateways add text to the prompt.
 */
type Check = (gateway: Gateway, engine: ScriptedEngine) => Promise<void>;

export const agentChecks: Record<string, Check> = {
  async "Claude Code, two tools at once"({ url, key, model, headers }, engine) {
    const done = await runClaude({
      url,
      model,
      files,
      prompt(folder) {
        const read = (name: string) => ({ name: "Read", arguments: { file_path: `${folder}/${name}` } });
        engine.play([{ calls: Object.keys(files).map(read) }, { text: answer }]);
        return "Read both files.";
      },
      env: { ANTHROPIC_AUTH_TOKEN: key, CLAUDE_CODE_MAX_RETRIES: "1", ANTHROPIC_CUSTOM_HEADERS: lines(headers) },
    });
    assert.ok(!done.failed, done.result);
    assert.equal(done.result, answer);
    bothReached(engine);
  },
  async "Codex, two tools at once"({ url, key, model, headers }, engine) {
    const print = (name: string) => ({ name: "exec_command", arguments: { cmd: `cat ${name}` } });
    engine.play([{ calls: Object.keys(files).map(print) }, { text: answer }]);
    const pairs = Object.entries(headers).map(([name, value]) => `"${name}" = "${value}"`);
    const provider = `http_headers = { ${pairs.join(", ")} }\nrequest_max_retries = 0\nstream_max_retries = 0`;
    const done = await runCodex({ url, key, model, files, provider, prompt: "Read both files." });
    assert.equal(done.code, 0, done.errors);
    assert.equal(done.answer, answer);
    bothReached(engine);
  },
};

const answer = "It is all done.";
const lines = (headers: Record<string, string>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

function bothReached({ asked }: ScriptedEngine): void {
  const told = JSON.stringify(asked.at(-1)?.messages.filter(({ role }) => role === "tool"));
  for (const word of ["apple", "pear"])
    assert.ok(told.includes(word), `the result with ${word} did not reach the engine`);
}
