// `bun scripts/schema.ts`: writes contract/sluice.schema.json and the tables of docs/configuration.md from the rows of
// code that declare the settings.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { schemaText } from "../src/config/settings/file.ts";
import { withTables } from "./settings-tables.ts";

const root = join(import.meta.dir, "..");
const page = join(root, "docs/configuration.md");
writeFileSync(join(root, "contract/sluice.schema.json"), schemaText());
writeFileSync(page, withTables(readFileSync(page, "utf8")));
