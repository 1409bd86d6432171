// Creates a small project for tests of code that reads TypeScript.

import { afterAll } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Compiler, compiler } from "../../scripts/drawn/compiler.ts";

/** Creates a folder with these files. It is removed after the tests. */
export function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-drawn-"));
  folders.push(folder);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** Starts the compiler on a project with these files. */
export async function project(files: Readonly<Record<string, string>>): Promise<Compiler> {
  const compilerOptions = { strict: true, noEmit: true, noLib: true, types: [] };
  const config = JSON.stringify({ compilerOptions, include: ["**/*.ts"] });
  return compiler(folderWith({ ...files, "tsconfig.json": config }));
}
