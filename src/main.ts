/**
 * The entry. It loads little: a server replaces itself once before anything heavy is read, and a command reads only the
 * rooms that it needs. Nothing runs before main(), for a compiled binary has no top-level await.
 */

/** Concurrent requests to upstreams; Bun queues silently beyond what stands in its environment at the start. */
const upstream_requests_max = 65_535;

async function main(): Promise<void> {
  const words = Bun.argv.slice(2);
  if (words[0] === "serve" || words[0] === "simulator") restartWithEnvironment(words);
  const [{ run }, { services }] = await Promise.all([import("./cli/run.ts"), import("./services.ts")]);
  process.exitCode = await run(words, services(process.env));
  // Everything is settled, written and closed: nothing that still ticks may keep a stopped node alive.
  if (words[0] === "serve") process.exit();
}

/** Bun reads this variable before any code of ours runs, so the process replaces itself once, under the same pid. */
function restartWithEnvironment(words: string[]): void {
  if (process.env.BUN_CONFIG_MAX_HTTP_REQUESTS !== undefined || !process.execve) return;
  const environment = { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: String(upstream_requests_max) };
  const source = isCompiled() ? [] : [import.meta.path];
  process.execve(process.execPath, [process.execPath, ...source, ...words], environment as NodeJS.ProcessEnv);
}

function isCompiled(): boolean {
  return import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN");
}

void main();
