// `bun scripts/compared/conformance.ts GATEWAY`: checks the rules of `npm run conformance` through a gateway whose engine
// is the simulator.

import { conformance } from "../../proof/conformance/command.ts";
import { gateways } from "../../test/clients/peers/gateways.ts";
import { startSimulator } from "../../test/harness/simulator.ts";

const name = process.argv[2] ?? "";
const start = gateways[name];
if (!start) {
  console.error(`usage: bun scripts/compared/conformance.ts ${Object.keys(gateways).join("|")}`);
  process.exit(2);
}
const simulator = await startSimulator({ namesModel: false });
const { url, key, model, stop } = await start(simulator.url);
const out = (text: string) => process.stdout.write(text);
await conformance([url, "--key", key, "--model", model], { key: null, out, err: (text) => process.stderr.write(text) });
await stop();
await simulator.stop();
// A broken rule is a result of the comparison, so the exit code is 0.
process.exit(0);
