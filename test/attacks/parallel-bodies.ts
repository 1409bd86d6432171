// An attack with many large bodies of one key in parallel, while a neighbour sends small requests with another key. The
// attacker and the neighbour are separate processes, so that neither waits for the other.

import type { Attack, Target } from "./attack.ts";
import { startBeside } from "./beside.ts";

const bodies = 40;
const body_bytes = 30 * 1024 * 1024;
const alone_ms = 4_000;
/**
 * The largest factor by which the attack may slow the neighbour's requests down: docs/attacks.md, Large bodies in
 * parallel.
 */
const slower_max = 3;

export const parallelBodies: Attack = {
  name: "40 bodies of 30 MiB of one key at once",
  async run(target) {
    const neighbour = await startBeside(target.url, target.neighbourKey, target.model);
    try {
      await Bun.sleep(alone_ms / 2);
      await neighbour.says();
      await Bun.sleep(alone_ms);
      const alone = await neighbour.says();
      const answers = await allSent(target);
      const beside = await neighbour.says();
      const slower = beside.p50_ms / alone.p50_ms;
      const told = `its neighbour's p50 went from ${alone.p50_ms.toFixed(1)} to ${beside.p50_ms.toFixed(1)} ms, × ${slower.toFixed(1)}`;
      console.log(told);
      const problems: string[] = [];
      if (slower > slower_max) problems.push(told);
      if (beside.failed > 0) problems.push(`${beside.failed} of the neighbour's ${beside.requests} requests failed`);
      const bytes = bodies * body_bytes;
      return { bytes, unpackedBytes: bytes, answers, problems };
    } finally {
      neighbour.stop();
    }
  },
  bounds: () => ({ step_ms: 150, growth_bytes: 10 * body_bytes }),
};

async function allSent({ url, key, model }: Target): Promise<string[]> {
  const child = Bun.spawn([process.execPath, import.meta.path, url, key, model], { stdout: "pipe", stderr: "inherit" });
  return JSON.parse(await child.stdout.text()) as string[];
}

function largeBody(model: string): string {
  const content = 'The quick brown fox said "hello". '.repeat(1_500);
  const messages = Array.from({ length: Math.floor(body_bytes / (content.length + 1_600)) }, (_, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content,
  }));
  return JSON.stringify({ model, max_tokens: 10, messages });
}

async function send(url: string, key: string, body: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
  const text = await answer.text();
  return answer.ok
    ? String(answer.status)
    : `${answer.status} ${(JSON.parse(text) as { error: { code: string } }).error.code}`;
}

if (import.meta.main) {
  const [url = "", key = "", model = ""] = process.argv.slice(2);
  const body = largeBody(model);
  console.log(JSON.stringify(await Promise.all(Array.from({ length: bodies }, () => send(url, key, body)))));
}
