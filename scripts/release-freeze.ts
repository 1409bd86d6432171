// `npm run release:freeze`: records, at a release, the migrations that are part of it. From then on `npm run check`
// fails if one of them is edited.

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { checksumOf, migrations } from "../db/migrate.ts";
import { editedMigrations, releasedChecksums, releasedLine } from "../test/house/walls.ts";

const released = "db/migrations/released";
const checksums = "db/migrations/checksums";
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
if (readFileSync(released, "utf8").includes(`${version}  `)) throw new Error(`${version} is in ${released} already.`);
const sums = migrations.map((one) => ({ name: one.name, sum: checksumOf(one) }));
const edited = editedMigrations(sums, readFileSync(checksums, "utf8"));
if (edited.length > 0) throw new Error(edited.join("\n"));
writeFileSync(checksums, releasedChecksums(sums));
const line = releasedLine(version, readFileSync(checksums, "utf8"));
appendFileSync(released, `${line}\n`);
console.log(line);
