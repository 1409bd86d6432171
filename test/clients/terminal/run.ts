// Claude Code in a real terminal, by a person's sign-in, against a node whose issuer is oidc-provider.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import type { Edition, Ran } from "../edition.ts";
import { fileIn, npmPackages } from "../npm-packages.ts";

const wanted = { "@anthropic-ai/claude-code": "2.1.332" };

export async function terminalSuite(edition: Edition): Promise<Ran> {
  const packages = await npmPackages("terminal", wanted, edition);
  const paths = [`@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`];
  const environment = { CLAUDE_CODE: fileIn(packages, paths, "Claude Code") };
  const checks = join(import.meta.dir, "claude-code.checks.ts");
  const { code, output } = await command([process.execPath, "test", checks], { limit_ms: 10 * 60_000, environment });
  return { counts: countsOf(output, code), versions: packages.versions };
}
