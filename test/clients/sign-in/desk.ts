// A machine on which the agents and `sluice` are installed, and no user has signed in; and a service with the user Ann.
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Laptop, laptop } from "../../harness/laptop.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { program } from "../../harness/sluice.ts";
import { quiet as quietClaude } from "../claude-code/agent.ts";
import { quiet as quietOpencode } from "../limits/opencode.ts";
import { outsideTrap } from "../traffic.ts";

export const model = "qwen/qwen3-coder";

/** Starts a node at which people can sign in. `more` has additional lines of its sluice.yaml. */
export function startedNode(env: Record<string, string> = {}, more = ""): Promise<PeopleNode> {
  const price = "\nmetering: { currency: EUR }\nreports: { provider: Example }\n";
  return startPeopleNode({ more: `  claude_code_settings: true\n${price}${more}`, env });
}

export interface Desk extends Disposable {
  home: Laptop;
  /** The requests that the agents tried to send to other machines. */
  caught: string[];
}

export function desk(): Desk {
  const trap = outsideTrap();
  const bare = laptop();
  const bin = join(bare.folder, "bin");
  mkdirSync(bin);
  for (const [name, path] of Object.entries({
    claude: process.env.CLAUDE_CODE,
    codex: process.env.CODEX,
    opencode: process.env.OPENCODE,
  }))
    if (path !== undefined) symlinkSync(path, join(bin, name));
  const sluice = join(bin, "sluice");
  writeFileSync(sluice, `#!/bin/sh\nexec ${program.map((word) => `'${word}'`).join(" ")} "$@"\n`);
  chmodSync(sluice, 0o755);
  const home = bare.with({ PATH: `${bin}:${bare.env.PATH}`, ...trap.env, ...quiet });
  return {
    home,
    caught: trap.caught,
    [Symbol.dispose]() {
      trap.stop();
      bare[Symbol.dispose]();
    },
  };
}

/** The agents' environment variables that keep them from sending requests to other machines. */
const quiet = {
  ...{ ...quietClaude, ...quietOpencode },
  CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: "1",
};
