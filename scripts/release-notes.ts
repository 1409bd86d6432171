// `npm run release:notes -- 0.2.0`: prints the section of CHANGELOG.md about that version.

import { readFileSync } from "node:fs";
import { notesOf } from "./release/notes.ts";

const version = process.argv[2];
if (version === undefined) {
  console.error("usage: npm run release:notes -- VERSION");
  process.exit(2);
}
console.log(notesOf(readFileSync("CHANGELOG.md", "utf8"), version));
