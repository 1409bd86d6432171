// Writes the table of metrics into docs/operating.md, from src/features/telemetry/table.ts: `bun scripts/metrics.ts`.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tableShown } from "../src/features/telemetry/table.ts";

const path = join(import.meta.dir, "..", "docs/operating.md");
const page = readFileSync(path, "utf8");
const old = /^\| metric \|.*\n(\|.*\n)+/m.exec(page)?.[0];
if (old === undefined) throw new Error(`${path} has no table of metrics`);
writeFileSync(
  path,
  page.replace(old, () => tableShown()),
);
