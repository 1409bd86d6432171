// `npm run release:freeze`: writes down, at a release, which migrations it has. From then on `npm run check` holds them.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { releasedLine } from "../test/house/walls.ts";

const path = "db/migrations/released";
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const before = existsSync(path) ? readFileSync(path, "utf8") : "";
if (before.includes(`${version}  `)) throw new Error(`${version} is in ${path} already.`);
const line = releasedLine(version, readFileSync("db/migrations/checksums", "utf8"));
appendFileSync(path, `${line}\n`);
console.log(line);
