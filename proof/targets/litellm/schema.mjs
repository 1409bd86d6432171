// Prints the SQL that creates the tables of a Prisma schema, with Prisma's schema engine in WebAssembly. The argument
// is the path of the schema.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.LITELLM_PRISMA, "package.json"));
const { PrismaPg } = require("adapter-of-schema");
const { bindSqlAdapterFactory } = require("utils-of-schema");
const glue = require.resolve("@prisma/schema-engine-wasm/schema_engine_bg");
const background = await import(pathToFileURL(glue).href);
const program = readFileSync(join(glue, "../schema_engine_bg.wasm"));
const { instance } = await WebAssembly.instantiate(program, { "./schema_engine_bg.js": background });
background.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

// A newer engine accepts neither a generator nor a database URL in the schema.
const schema = readFileSync(process.argv[2], "utf8");
const content = schema.replace(/generator \w+ \{[^}]*\}/, "").replace(/^\s*url\s*=.*$/m, "");
const files = [{ path: "schema.prisma", content }];
const database = new PrismaPg({ connectionString: process.env.DATABASE_URL });
const datamodels = [["schema.prisma", content]];
const engine = await background.SchemaEngine.new({ datamodels }, () => {}, bindSqlAdapterFactory(database));
const { stdout } = await engine.diff({
  ...{ from: { tag: "empty" }, to: { tag: "schemaDatamodel", files }, script: true, exitCode: null },
  ...{ shadowDatabaseUrl: null, filters: { externalTables: [], externalEnums: [] } },
});
process.stdout.write(stdout, () => process.exit(0));
