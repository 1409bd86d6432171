// A process beside the attack: asks GET /livez all the time. Prints the slowest answer of each stretch when a line comes in.

const [url] = process.argv.slice(2);
const pause_ms = 5;
let slowest_ms = 0;

async function ask(): Promise<void> {
  const began = performance.now();
  try {
    await (await fetch(`${url}/livez`, { signal: AbortSignal.timeout(60_000) })).text();
  } catch {
    // No answer is as slow as it took to get none.
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
