// A process beside the attack: somebody with another key who asks a small question again and again, as a person's agent
// does. `bun test/attacks/neighbour.ts URL KEY MODEL`; for each line of input it prints, as JSON, how the answers since the
// last line were.

const [url = "", key = "", model = ""] = process.argv.slice(2);
const pause_ms = 10;

export interface NeighbourSays {
  requests: number;
  failed: number;
  p50_ms: number;
  p99_ms: number;
}

let latencies: number[] = [];
let failed = 0;

async function ask(): Promise<void> {
  const began = performance.now();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ model, max_tokens: 5, messages: [{ role: "user", content: "hello" }] });
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body }).catch(() => null);
  await answer?.text();
  if (answer?.status !== 200) failed += 1;
  latencies.push(performance.now() - began);
  setTimeout(ask, pause_ms);
}

function said(): NeighbourSays {
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { requests: sorted.length, failed, p50_ms: at(0.5), p99_ms: at(0.99) };
}

await ask();
for await (const _line of console) {
  console.log(JSON.stringify(said()));
  latencies = [];
  failed = 0;
}
process.exit(0);
