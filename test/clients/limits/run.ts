// What clients make of a request that can never pass: the AI SDK in its last three majors, LangChain for JS, and opencode,
// from npm, by each protocol. The suites of Codex, Claude Code and LangChain for Python ask the same of them.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import type { Edition, Ran } from "../edition.ts";
import { fileIn, npmPackages, type Wanted } from "../npm-packages.ts";
import { outsideTrap } from "../traffic.ts";

const majors: Record<string, Wanted> = {
  "5": aiSdk(
    { ai: "5.0.277", openai: "2.0.130", anthropic: "2.0.112", compatible: "1.0.61" },
    { ai: "5", openai: "2", anthropic: "2", compatible: "1" },
  ),
  "6": aiSdk(
    { ai: "6.0.325", openai: "3.0.141", anthropic: "3.0.140", compatible: "2.0.92" },
    { ai: "6", openai: "3", anthropic: "3", compatible: "2" },
  ),
  "7": aiSdk(
    { ai: "7.0.173", openai: "4.0.118", anthropic: "4.0.105", compatible: "3.0.92" },
    { ai: "7", openai: "4", anthropic: "4", compatible: "3" },
  ),
};
const langchain: Wanted = {
  "@langchain/core": "1.4.0",
  "@langchain/openai": "1.6.0",
  "@langchain/anthropic": "1.5.11",
};
const opencode: Wanted = { "opencode-ai": "1.18.33" };

interface AiSdkVersions {
  ai: string;
  openai: string;
  anthropic: string;
  compatible: string;
}
function aiSdk(pinned: AiSdkVersions, newest: AiSdkVersions): Wanted {
  const both = (name: keyof AiSdkVersions) => ({ pinned: pinned[name], newest: newest[name] });
  return {
    ai: both("ai"),
    "@ai-sdk/openai": both("openai"),
    "@ai-sdk/anthropic": both("anthropic"),
    "@ai-sdk/openai-compatible": both("compatible"),
    zod: "4.6.7",
  };
}

export async function limitsSuite(edition: Edition): Promise<Ran> {
  const versions: string[] = [];
  const folders: Record<string, string> = {};
  for (const [major, wanted] of Object.entries({ ...majors, langchain, opencode })) {
    const installed = await npmPackages(`limits-${major}`, wanted, edition);
    versions.push(installed.versions);
    folders[major] = installed.folder;
    if (major !== "opencode") continue;
    const platform = `opencode-${process.platform}-${process.arch}`;
    folders.opencode = fileIn(installed, [`${platform}/bin/opencode`, `${platform}/bin/opencode.exe`], "opencode");
  }
  const trap = outsideTrap();
  try {
    const { code, output } = await command([process.execPath, "test", join(import.meta.dir, "limits.checks.ts")], {
      limit_ms: 15 * 60_000,
      environment: { LIMITS_CLIENTS: JSON.stringify(folders), ...trap.env },
    });
    if (trap.caught.length > 0) throw new Error(`They wanted to leave this machine: ${trap.caught.join(", ")}`);
    return { counts: countsOf(output, code), versions: versions.join(", ") };
  } finally {
    trap.stop();
  }
}
