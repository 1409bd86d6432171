// A process that sends a node one request after another during an attack: small chat requests, like those of a person's
// agent, if it gets a key and a model, else GET /livez. `bun test/attacks/beside.ts URL [KEY MODEL]`. For each line of
// input it prints, as JSON, how many responses arrived and how many requests failed since the last line, and how long
// they took.

interface BesideSays {
  requests: number;
  failed: number;
  p50_ms: number;
  slowest_ms: number;
}

export async function startBeside(url: string, ...question: [] | [key: string, model: string]) {
  const words = [process.execPath, import.meta.path, url, ...question];
  const child = Bun.spawn(words, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const says = async (): Promise<BesideSays> => {
    child.stdin.write("?\n");
    await child.stdin.flush();
    return JSON.parse((await lines.read()).value ?? "");
  };
  await says();
  return { says, stop: () => child.kill() };
}

async function main(url: string, key: string | undefined, model: string | undefined): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ model, max_tokens: 5, messages: [{ role: "user", content: "hello" }] });
  const asked = key ? { path: "/v1/chat/completions", method: "POST", headers, body } : { path: "/livez" };
  const pause_ms = key ? 10 : 5;
  let latencies: number[] = [];
  let failed = 0;
  const ask = async () => {
    const began = performance.now();
    // A failed request is counted with the time until it failed.
    const answer = await fetch(url + asked.path, { ...asked, signal: AbortSignal.timeout(60_000) }).catch(() => null);
    await answer?.text().catch(() => {});
    if (answer?.status !== 200) failed += 1;
    latencies.push(performance.now() - began);
    setTimeout(ask, pause_ms);
  };
  await ask();
  for await (const _line of console) {
    const sorted = latencies.toSorted((one, other) => one - other);
    const p50_ms = sorted[Math.floor(sorted.length / 2)] ?? 0;
    console.log(JSON.stringify({ requests: sorted.length, failed, p50_ms, slowest_ms: sorted.at(-1) ?? 0 }));
    latencies = [];
    failed = 0;
  }
  process.exit(0);
}

if (import.meta.main) {
  const [url = "", key, model] = process.argv.slice(2);
  await main(url, key, model);
}
