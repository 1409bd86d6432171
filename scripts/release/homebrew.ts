// Writes the Homebrew formula. The URL of the archives is given by the person who publishes them.

import type { Target } from "./targets.ts";

export interface Archive {
  target: Target;
  /** The archive's file name. */
  name: string;
  sha256: string;
}

/** The text of the formula. `base` is the URL of the folder with the archives. */
export function formulaOf(version: string, base: string, archives: readonly Archive[]): string {
  const of = (name: string) => archives.find(({ target }) => target.name === name);
  return [
    "class Sluice < Formula",
    '  desc "Model inference service that a team runs itself"',
    `  version ${JSON.stringify(version)}`,
    "",
    ...system("macos", base, { arm: of("darwin-arm64"), intel: of("darwin-x64") }),
    ...system("linux", base, { arm: of("linux-arm64"), intel: of("linux-x64") }),
    "  def install",
    '    bin.install "sluice"',
    '    generate_completions_from_executable(bin/"sluice", "completion")',
    "  end",
    "",
    "  test do",
    '    assert_match version.to_s, shell_output("#{bin}/sluice --version")',
    "  end",
    "end",
    "",
  ].join("\n");
}

function system(name: string, base: string, archives: Record<string, Archive | undefined>): string[] {
  const blocks = Object.entries(archives).flatMap(([cpu, archive]) =>
    archive === undefined
      ? []
      : [
          `    on_${cpu} do`,
          `      url ${JSON.stringify(`${base}/${archive.name}`)}`,
          `      sha256 ${JSON.stringify(archive.sha256)}`,
          "    end",
        ],
  );
  return blocks.length === 0 ? [] : [`  on_${name} do`, ...blocks, "  end", ""];
}
