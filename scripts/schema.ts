// Writes sluice.schema.json from the typebox value that checks sluice.yaml: `bun scripts/schema.ts`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { schemaText } from "../src/config/settings/file.ts";

writeFileSync(join(import.meta.dir, "..", "sluice.schema.json"), schemaText());
