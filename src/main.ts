/**
 * The entry point. It loads little: a command loads only the modules that it needs. Nothing runs before main(), because
 * a compiled binary has no top-level await.
 */

async function main(): Promise<void> {
  const words = Bun.argv.slice(2);
  const isServing = words[0] === "serve";
  const early = isServing ? (await import("./node/early.ts")).beginEarly(process.env) : null;
  const [{ run }, { services }] = await Promise.all([import("./admin/cli/run.ts"), import("./node/services.ts")]);
  process.exitCode = await run(words, services(process.env, early));
  // Everything is settled, written and closed: no remaining timer may keep a stopped node alive.
  if (isServing) process.exit();
}

void main();
