// Builds the npm packages: one that starts the program, and one with the executable for each platform, of which npm
// installs the one that fits.

import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../command.ts";
import { programName, type Target } from "./targets.ts";

const limit_ms = 2 * 60_000;

/** The packages are `private`, which npm refuses to publish, until the licence is decided. */
const common = { license: "UNLICENSED", private: true, engines: { node: ">=18" } };

export function packageName({ name }: Pick<Target, "name">): string {
  return `sluice-${name}`;
}

/** Builds the npm package that starts the program, and returns the package's path. */
export async function packLauncher(folder: string, version: string, targets: readonly Target[]): Promise<string> {
  const place = join(folder, "npm", "sluice");
  mkdirSync(place, { recursive: true });
  copyFileSync(join(import.meta.dir, "launcher.js"), join(place, "launcher.js"));
  chmodSync(join(place, "launcher.js"), 0o755);
  copyFileSync("README.md", join(place, "README.md"));
  write(place, {
    name: "sluice",
    version,
    description: "A model inference service that a team runs itself",
    ...common,
    type: "module",
    bin: { sluice: "launcher.js" },
    files: ["launcher.js"],
    optionalDependencies: Object.fromEntries(targets.map((target) => [packageName(target), version])),
  });
  return pack(place, folder);
}

export async function packExecutable(
  folder: string,
  version: string,
  target: Target,
  files: readonly string[],
): Promise<string> {
  const place = join(folder, "npm", packageName(target));
  mkdirSync(join(place, "bin"), { recursive: true });
  const [executable, ...papers] = files;
  copyFileSync(executable!, join(place, "bin", programName(target)));
  chmodSync(join(place, "bin", programName(target)), 0o755);
  for (const paper of papers) copyFileSync(paper, join(place, paper.split("/").at(-1)!));
  write(place, {
    name: packageName(target),
    version,
    description: `The executable of Sluice for ${target.name}`,
    ...common,
    os: [target.os],
    cpu: [target.cpu],
    ...(target.libc === undefined ? {} : { libc: [target.libc] }),
    files: ["bin", ...papers.map((paper) => paper.split("/").at(-1)!)],
  });
  return pack(place, folder);
}

function write(place: string, manifest: object): void {
  writeFileSync(join(place, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

async function pack(place: string, folder: string): Promise<string> {
  const { code, stdout, output } = await command(["npm", "pack", "--silent", "--pack-destination", folder, place], {
    limit_ms,
    quiet: true,
  });
  if (code !== 0) throw new Error(`npm could not pack ${place}: ${output}`);
  return join(folder, stdout.trim().split("\n").at(-1)!);
}
