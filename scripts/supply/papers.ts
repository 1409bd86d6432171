// Writes the files that are distributed with an executable: the licence notices, the bill of materials, and the
// checksums.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { noticesOf } from "./notices.ts";
import { bundledPackages, postgresVersion } from "./packages.ts";
import { sbomOf } from "./sbom.ts";

const notices = "THIRD_PARTY_NOTICES";
const sbom = "sluice.cdx.json";
const sums = "SHA256SUMS";

/**
 * Writes the notices, the bill of materials and the checksums for all executables in the folder, whose names begin with
 * `sluice`. The same inputs give the same files.
 */
export function writePapers({
  folder,
  version,
  metafile,
}: {
  folder: string;
  version: string;
  metafile: string;
}): void {
  const packages = bundledPackages(metafile);
  const [bun, postgres] = [Bun.version, postgresVersion()];
  writeFileSync(join(folder, notices), noticesOf(packages, { bun, postgres }));
  writeFileSync(join(folder, sbom), sbomOf({ version, packages, bun, postgres }));
  const handedOn = readdirSync(folder).filter((name) => name === notices || /^sluice(?!.*\.map$)/.test(name));
  const lines = handedOn.sort().map((name) => `${sha256(join(folder, name))}  ${name}\n`);
  writeFileSync(join(folder, sums), lines.join(""));
}

function sha256(path: string): string {
  return new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");
}
