// Runs the official Python SDKs, and frameworks that are built on them, against the service in front of the simulator.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import { startService } from "../../harness/engine.ts";
import type { Edition, Ran, Suite } from "../edition.ts";
import { type PythonPackages, pythonFor } from "../virtual-environment.ts";

export const pythonSuite: Suite = (edition) => ranBy("openai_script.py", openai, edition);
export const anthropicSuite: Suite = (edition) => ranBy("anthropic_script.py", anthropic, edition);
export const frameworkSuite: Suite = (edition) =>
  ranBy("frameworks_script.py", frameworks, edition, ["openai/writer-1"]);

const openai: PythonPackages = {
  requirements: join(import.meta.dir, "requirements.txt"),
  meant: ["openai"],
  folder: "python",
};
const anthropic: PythonPackages = {
  requirements: join(import.meta.dir, "requirements-anthropic.txt"),
  meant: ["anthropic"],
  folder: "anthropic-python",
};
export const frameworks: PythonPackages = {
  requirements: join(import.meta.dir, "requirements-frameworks.txt"),
  meant: ["openai", "openai-agents", "anthropic", "langchain-core", "langchain-openai", "langchain-anthropic"],
  folder: "frameworks-python",
};

async function ranBy(script: string, packages: PythonPackages, edition: Edition, models?: string[]): Promise<Ran> {
  const { python, versions } = await pythonFor(packages, edition);
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
    return { counts: countsOf(output, code), versions };
  } finally {
    counts.stop(true);
    await service.stop();
  }
}
