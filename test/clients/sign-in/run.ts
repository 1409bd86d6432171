// Claude Code, Codex and opencode by a person's sign-in, from nothing to the first answer, against a node whose issuer is
// oidc-provider. Their traffic stays on this machine.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import { codexIn } from "../codex/run.ts";
import type { Edition, Ran } from "../edition.ts";
import { fileIn, npmPackages } from "../npm-packages.ts";

const wanted = { "@anthropic-ai/claude-code": "2.1.332", "@openai/codex": "0.171.0", "opencode-ai": "1.18.33" };

export async function signInSuite(edition: Edition): Promise<Ran> {
  const packages = await npmPackages("sign-in", wanted, edition);
  const machine = `${process.platform}-${process.arch}`;
  const environment = {
    CLAUDE_CODE: fileIn(packages, [`@anthropic-ai/claude-code-${machine}/claude`], "Claude Code"),
    CODEX: codexIn(packages.folder),
    OPENCODE: fileIn(packages, [`opencode-${machine}/bin/opencode`], "opencode"),
  };
  const checks = ["agents.checks.ts"].map((name) => join(import.meta.dir, name));
  const { code, output } = await command([process.execPath, "test", ...checks], { limit_ms: 15 * 60_000, environment });
  return { counts: countsOf(output, code), versions: packages.versions };
}
