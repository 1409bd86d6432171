// A process beside the attack: sends GET /livez all the time. For each line of input, prints the slowest answer since the
// last line.

const [url] = process.argv.slice(2);
const pause_ms = 5;
let slowest_ms = 0;

async function ask(): Promise<void> {
  const began = performance.now();
  try {
    await (await fetch(`${url}/livez`, { signal: AbortSignal.timeout(60_000) })).text();
  } catch {
    // A failed request counts as an answer that took this long.
  }
  slowest_ms = Math.max(slowest_ms, performance.now() - began);
  setTimeout(ask, pause_ms);
}

await ask();
slowest_ms = 0;
for await (const _line of console) {
  console.log(slowest_ms.toFixed(1));
  slowest_ms = 0;
}
process.exit(0);

export {};
