// Builds a package for Debian and Ubuntu with the program, its systemd service, and the files that Debian's rules
// require.

import { chmodSync, copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command } from "../command.ts";
import type { Target } from "./targets.ts";

const limit_ms = 3 * 60_000;
const architectures: Record<string, string> = { "linux-x64": "amd64", "linux-arm64": "arm64" };

export function isForDebian({ name }: Target): boolean {
  return name in architectures;
}

/**
 * Builds the package and returns its path. `files` are the executable, the licence notices and the bill of materials.
 */
export async function debianPackage(
  folder: string,
  version: string,
  target: Target,
  [executable, ...papers]: readonly string[],
): Promise<string> {
  const architecture = architectures[target.name]!;
  const root = join(folder, "deb", architecture);
  const put = (from: string, to: string, mode: number) => {
    mkdirSync(dirname(join(root, to)), { recursive: true });
    copyFileSync(from, join(root, to));
    chmodSync(join(root, to), mode);
  };
  put(executable!, "usr/bin/sluice", 0o755);
  for (const paper of papers) put(paper, `usr/share/doc/sluice/${paper.split("/").at(-1)}`, 0o644);
  put("sluice.example.yaml", "usr/share/doc/sluice/sluice.example.yaml", 0o644);
  put("README.md", "usr/share/doc/sluice/README.md", 0o644);
  put("deploy/systemd/shell.sh", "usr/share/doc/sluice/shell.sh", 0o644);
  mkdirSync(join(root, "usr/lib/systemd/system"), { recursive: true });
  const unit = readFileSync("deploy/systemd/sluice.service", "utf8").replace(
    "/usr/local/bin/sluice",
    "/usr/bin/sluice",
  );
  writeFileSync(join(root, "usr/lib/systemd/system/sluice.service"), unit);
  mkdirSync(join(root, "DEBIAN"), { recursive: true });
  writeFileSync(join(root, "DEBIAN/control"), control(version, architecture, statSync(executable!).size));
  const file = join(folder, `sluice_${version}_${architecture}.deb`);
  const words = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", root, file];
  const { code, output } = await command(words, { limit_ms, quiet: true });
  if (code !== 0) throw new Error(`dpkg-deb could not build ${file}: ${output}`);
  return file;
}

// The text of the package's control file. In a version, Debian treats the text after a hyphen as the package's
// revision, and sorts a version with a tilde before the same version without it.
function control(version: string, architecture: string, bytes: number): string {
  return [
    "Package: sluice",
    `Version: ${version.replace("-", "~")}`,
    `Architecture: ${architecture}`,
    "Maintainer: the Sluice authors <noreply@localhost>",
    `Installed-Size: ${Math.ceil(bytes / 1024)}`,
    "Depends: libc6 (>= 2.29)",
    "Recommends: ca-certificates",
    "Suggests: postgresql, redis-server",
    "Section: net",
    "Priority: optional",
    "Description: model inference service that a team runs itself",
    " Sluice stands in front of language-model engines and speaks the protocols of",
    " OpenAI and Anthropic, with keys, plans and usage that is metered exactly.",
    " The service is not started by itself: put sluice.yaml into /etc/sluice first.",
    "",
  ].join("\n");
}
