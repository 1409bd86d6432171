// `npm run peers -- GATEWAY`: real clients through a gateway in front of the simulator, one line each: what works, and what
// the client says of what doesn't. `npm run peers -- GATEWAY console` measures the first load of its console.
// docs/compared.md has what it found.

import { noBrowser } from "../../console/chromium.ts";
import { startConsoleNode } from "../../console/node.ts";
import { codexIn } from "../codex/run.ts";
import { fileIn, npmPackages } from "../npm-packages.ts";
import { agentChecks } from "./agents.ts";
import { firstLoad } from "./first-load.ts";
import { gateways } from "./gateways.ts";
import { sdkChecks } from "./sdk.ts";

const wanted = { "@anthropic-ai/claude-code": "2.1.332", "@openai/codex": "0.169.0" };
/** Where the console of each is. */
const consoles: Record<string, string> = { litellm: "/ui/", portkey: "/public/" };

async function main(name = "", what?: string): Promise<number> {
  const start = gateways[name];
  if (!start || (what !== undefined && what !== "console")) {
    console.error(`usage: npm run peers -- ${Object.keys(gateways).join("|")} [console]`);
    return 2;
  }
  if (what === "console") return measured(name);
  const packages = await npmPackages("peers", wanted, "pinned");
  const claude = `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`;
  process.env.CLAUDE_CODE = fileIn(packages, [claude], "Claude Code");
  process.env.CODEX = codexIn(packages.folder);
  const gateway = await start();
  console.log(`${name} ${gateway.version}; ${packages.versions}`);
  for (const [title, check] of Object.entries({ ...sdkChecks, ...agentChecks })) {
    const failure = await check(gateway).then(
      () => null,
      (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
    );
    console.log(`${title}: ${failure === null ? "works" : `FAILS: ${failure.slice(0, 400).replaceAll(/\s+/g, " ")}`}`);
  }
  await gateway.stop();
  return 0;
}

async function measured(name: string): Promise<number> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return 0;
  }
  const { url, stop } = name === "sluice" ? await ourConsole() : await gateways[name]!();
  const { requests, gzip_bytes, elsewhere } = await firstLoad(url + (consoles[name] ?? "/"));
  const others = elsewhere.length === 0 ? "no other host" : `asks ${elsewhere.join(", ")}`;
  console.log(`${name}: ${(gzip_bytes / 1000).toFixed(1)} KB (gzip) in ${requests} requests; ${others}`);
  await stop();
  return 0;
}

async function ourConsole() {
  const { sluice, url } = await startConsoleNode();
  return { url, stop: () => sluice.stop() };
}

process.exit(await main(...process.argv.slice(2)));
