// The suites of unmodified clients from npm against the service in front of a simulated engine: the packages, the files
// of checks, and the environment variables that tell the checks where the programs are. No traffic leaves this machine.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { CannotRun, type Edition, ranChecks, type Suite } from "./edition.ts";
import { fileIn, type Installed, npmPackages, type Wanted } from "./npm-packages.ts";
import { withinMachine } from "./traffic.ts";

const machine = `${process.platform}-${process.arch}`;
const codex: Wanted = { "@openai/codex": "0.171.0" };
const opencode: Wanted = { "opencode-ai": "1.18.33" };
const claudeCode: Wanted = { "@anthropic-ai/claude-code": "2.1.332" };

interface NpmSuite {
  wanted: Wanted;
  /** The paths of the files with the checks. */
  checks: string[];
  environment: (packages: Installed) => Record<string, string>;
  minutes: number;
}

/** Creates a suite. `name` is the folder of its packages below .cache/clients. */
function suiteOf(name: string, { wanted, checks, environment, minutes }: NpmSuite): Suite {
  return async (edition) => {
    const packages = await npmPackages(name, wanted, edition);
    const how = { limit_ms: minutes * 60_000, environment: environment(packages) };
    return { counts: await ranChecks(checks, how), versions: packages.versions };
  };
}

export const claudeSuite = suiteOf("claude-code", {
  wanted: { "@anthropic-ai/claude-code": "2.1.329" },
  checks: ["claude-code/claude-code.checks.ts", "claude-code/cost.checks.ts"],
  environment: (packages) => ({ CLAUDE_CODE: claudeIn(packages) }),
  minutes: 20,
});
export const terminalSuite = suiteOf("terminal", {
  wanted: claudeCode,
  checks: ["terminal/claude-code.checks.ts"],
  environment: (packages) => ({ CLAUDE_CODE: claudeIn(packages) }),
  minutes: 10,
});
const asCodex = { wanted: codex, environment: (packages: Installed) => ({ CODEX: codexIn(packages) }), minutes: 20 };
export const codexSuite = suiteOf("codex", {
  ...asCodex,
  checks: ["codex.checks.ts", "compaction.checks.ts", "engines.checks.ts"].map((file) => `codex/${file}`),
});
export const codexTurnsSuite = suiteOf("codex", { ...asCodex, checks: ["codex/turns.checks.ts"] });
/**
 * Claude Code, Codex and opencode, used with a person's sign-in instead of a key; the node's issuer is oidc-provider.
 */
export const signInSuite = suiteOf("sign-in", {
  wanted: { ...claudeCode, ...codex, ...opencode },
  checks: ["sign-in/agents.checks.ts"],
  environment: (packages) => ({
    CLAUDE_CODE: claudeIn(packages),
    CODEX: codexIn(packages),
    OPENCODE: opencodeIn(packages),
  }),
  minutes: 15,
});
export const piSuite = suiteOf("pi", {
  wanted: { "@earendil-works/pi-coding-agent": "1.6.0" },
  checks: ["pi/pi.checks.ts"],
  environment: (packages) => ({
    PI: fileIn(packages, ["@earendil-works/pi-coding-agent/dist/bundle/cli.js"], "script of pi"),
  }),
  minutes: 15,
});

/** The AI SDK and the OpenAI Agents SDK, which use the Responses protocol. */
export const aiSuite: Suite = (edition) =>
  withinMachine((trapped) => {
    const wanted = {
      ai: "7.0.173",
      "@ai-sdk/openai": "4.0.118",
      "@openai/agents": "0.20.0",
      openai: "7.57.0",
      zod: "4.6.7",
    };
    const environment = ({ folder }: Installed) => ({ AI_PACKAGES: folder, ...trapped });
    return suiteOf("ai", { wanted, checks: ["ai/ai.checks.ts"], environment, minutes: 5 })(edition);
  });

/** The last three major versions of the AI SDK, each with the pinned versions of its packages. */
const majors: Record<string, Wanted> = {
  "5": aiSdk({ ai: "5.0.277", openai: "2.0.130", anthropic: "2.0.112", "openai-compatible": "1.0.61" }),
  "6": aiSdk({ ai: "6.0.325", openai: "3.0.141", anthropic: "3.0.140", "openai-compatible": "2.0.92" }),
  "7": aiSdk({ ai: "7.0.173", openai: "4.0.118", anthropic: "4.0.105", "openai-compatible": "3.0.92" }),
};
const langchain: Wanted = {
  "@langchain/core": "1.4.0",
  "@langchain/openai": "1.6.0",
  "@langchain/anthropic": "1.5.11",
};

/**
 * The packages of one major version of the AI SDK. With `--newest`, the newest versions within that major are taken.
 */
function aiSdk(pinned: Record<string, string>): Wanted {
  const both = Object.entries(pinned).map(([name, version]) => [
    name === "ai" ? name : `@ai-sdk/${name}`,
    { pinned: version, newest: version.split(".")[0]! },
  ]);
  return { ...Object.fromEntries(both), zod: "4.6.7" };
}

/**
 * Tests how clients react to a request that exceeds a whole limit: the AI SDK, LangChain for JS, and opencode, in each
 * protocol. The suites of Codex, Claude Code and LangChain for Python test the same for those clients.
 */
export async function limitsSuite(edition: Edition): ReturnType<Suite> {
  const versions: string[] = [];
  const folders: Record<string, string> = {};
  for (const [name, wanted] of Object.entries({ ...majors, langchain, opencode })) {
    const installed = await npmPackages(`limits-${name}`, wanted, edition);
    versions.push(installed.versions);
    folders[name] = name === "opencode" ? opencodeIn(installed) : installed.folder;
  }
  const counts = await withinMachine((trapped) => {
    const environment = { LIMITS_CLIENTS: JSON.stringify(folders), ...trapped };
    return ranChecks(["limits/limits.checks.ts"], { limit_ms: 15 * 60_000, environment });
  });
  return { counts, versions: versions.join(", ") };
}

/**
 * The path of Claude Code's executable in its package for this platform. It is used because the launcher in the main
 * package works only after the package's install script has run, and install scripts are not run.
 */
export function claudeIn(packages: Installed): string {
  const platform = `@anthropic-ai/claude-code-${machine}`;
  return fileIn(packages, [`${platform}/claude`, `${platform}/claude.exe`], "Claude Code");
}

function opencodeIn(packages: Installed): string {
  return fileIn(packages, [`opencode-${machine}/bin/opencode`, `opencode-${machine}/bin/opencode.exe`], "opencode");
}

/** The path of Codex's executable, which is in a separate package for each platform. */
export function codexIn({ folder }: Installed): string {
  const cwd = join(folder, "node_modules/@openai", `codex-${machine}`);
  const name = process.platform === "win32" ? "codex.exe" : "codex";
  const [found] = existsSync(cwd) ? [...new Bun.Glob(`vendor/*/bin/${name}`).scanSync({ cwd })] : [];
  if (found === undefined) throw new CannotRun(`There is no Codex for this machine (${machine}).`);
  return join(cwd, found);
}
