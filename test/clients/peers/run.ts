// `npm run peers -- GATEWAY` runs real clients through a gateway. It prints one line per check: that it works, or the
// client's error. The SDKs use the simulator behind the gateway, and the agents an engine that follows a script. `npm
// run peers -- GATEWAY console` measures the first load of the gateway's console. docs/compared.md has the findings.

import { noBrowser } from "../../admin/console/chromium.ts";
import { startConsoleNode } from "../../admin/console/node.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { npmPackages } from "../npm-packages.ts";
import { claudeIn, codexIn } from "../npm-suites.ts";
import { startScriptedEngine } from "../scripted-engine.ts";
import { agentChecks } from "./agents.ts";
import { firstLoad } from "./first-load.ts";
import { gateways } from "./gateways.ts";
import { sdkChecks } from "./sdk.ts";

const wanted = { "@anthropic-ai/claude-code": "2.1.332", "@openai/codex": "0.169.0" };
/** The path of each gateway's console. */
const consoles: Record<string, string> = { litellm: "/ui/", portkey: "/public/" };

const nowhere = "http://127.0.0.1:1/v1";

async function main(name = "", what?: string): Promise<number> {
  const start = gateways[name];
  if (!start || (what !== undefined && what !== "console")) {
    console.error(`usage: npm run peers -- ${Object.keys(gateways).join("|")} [console]`);
    return 2;
  }
  if (what === "console") return measured(name);
  const packages = await npmPackages("peers", wanted, "pinned");
  process.env.CLAUDE_CODE = claudeIn(packages);
  process.env.CODEX = codexIn(packages);
  const simulator = await startSimulator({ namesModel: false });
  const scripted = startScriptedEngine();
  const [forSdks, forAgents] = [await start(simulator.url), await start(scripted.url)];
  console.log(`${name} ${forSdks.version}; ${packages.versions}`);
  for (const [title, check] of Object.entries(sdkChecks)) await tell(title, check(forSdks));
  for (const [title, check] of Object.entries(agentChecks)) await tell(title, check(forAgents, scripted));
  await Promise.all([forSdks.stop(), forAgents.stop(), simulator.stop()]);
  scripted.stop();
  return 0;
}

async function tell(title: string, check: Promise<void>): Promise<void> {
  const failure = await check.then(
    () => null,
    (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
  );
  console.log(`${title}: ${failure === null ? "works" : `FAILS: ${failure.slice(0, 400).replaceAll(/\s+/g, " ")}`}`);
}

async function measured(name: string): Promise<number> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return 0;
  }
  const { url, stop } = name === "sluice" ? await ourConsole() : await gateways[name]!(nowhere);
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
