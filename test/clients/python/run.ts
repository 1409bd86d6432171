// The official SDKs for Python, and frameworks that stand on them, against the service in front of the simulator.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { startService } from "../../harness/engine.ts";
import { pythonWith } from "../virtual-environment.ts";

export const pythonCounts = () => countsBy("openai_script.py", "requirements.txt", "python");
export const anthropicCounts = () => countsBy("anthropic_script.py", "requirements-anthropic.txt", "anthropic-python");
export const frameworkCounts = () =>
  countsBy("frameworks_script.py", "requirements-frameworks.txt", "frameworks-python", ["openai/writer-1"]);

async function countsBy(script: string, requirements: string, folder: string, models?: string[]): Promise<Counts> {
  const python = await pythonWith(join(import.meta.dir, requirements), folder);
  const service = await startService({ engine: { directives: "", namesModel: false }, ...(models && { models }) });
  const counts = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(service.engine.counts) });
  try {
    await service.json("org", "create", "narrow", "--plan", "unlimited");
    const reader = ["--org", "narrow", "--name", "reader", "--scopes", "models:read"];
    const { key } = await service.json<{ key: string }>("key", "create", ...reader);
    const { code, output } = await command([python, join(import.meta.dir, script)], {
      limit_ms: 5 * 60_000,
      environment: {
        SLUICE_URL: `${service.url}/v1`,
        SLUICE_KEY: service.key,
        SLUICE_READER_KEY: key,
        ENGINE_COUNTS_URL: counts.url.href,
      },
    });
    return countsOf(output, code);
  } finally {
    counts.stop(true);
    await service.stop();
  }
}
