// Writes THIRD_PARTY_NOTICES: the full licences of everything that is in the executable.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Package } from "./packages.ts";

const texts = "scripts/licences";
const apache = "node_modules/@electric-sql/pglite/LICENSE";
const rule = "-".repeat(100);

/**
 * The text of the notices. Throws if the licence of a package is unknown: such a package must not be shipped before a
 * person has checked it.
 */
export function noticesOf(packages: readonly Package[], versions: { bun: string; postgres: string }): string {
  const sections = [
    ...packages.map((one) => section(`${one.name} ${one.version}`, one.license, licenceOf(one))),
    section(`Bun ${versions.bun}`, "MIT and others", `${standard("Bun")}\n\n${standard("MIT")}`),
    section(`PostgreSQL ${versions.postgres}, in @electric-sql/pglite`, "PostgreSQL", standard("PostgreSQL")),
  ];
  const head = "The executable of Sluice contains the following software of others. Each is under its own licence.";
  return [`${head}\n`, ...sections].join(`\n${rule}\n`);
}

function section(title: string, licence: string | null, text: string): string {
  return `${title}\nLicence: ${licence}\n\n${text}\n`;
}

function licenceOf(one: Package): string {
  const { name, folder, license, author, inside } = one;
  const files = readdirSync(folder!)
    .filter((file) => /^(licen[cs]e|copying|copyright|notice)/i.test(file))
    .sort();
  const own = files.map((file) => readFileSync(join(folder!, file), "utf8").trim());
  // If the package contains no licence text, the text of the licence that its manifest names is used.
  const text = own.length > 0 ? own.join("\n\n") : `By ${author}.\n\n${textOf(name, license)}`;
  if (inside.length === 0) return text;
  const names = inside.map((it) => (it.version ? `${it.name} ${it.version}` : it.name));
  return `${text}\n\nIts makers put these packages into it, whose licences it names: ${names.join(", ")}.`;
}

function textOf(name: string, license: string | null): string {
  if (license === "Apache-2.0") return readFileSync(apache, "utf8").trim();
  if (license === "MIT" || license === "Unlicense") return standard(license);
  throw new Error(`${name} brings no licence text, and '${license}' is not in ${texts}`);
}

function standard(name: string): string {
  return readFileSync(join(texts, `${name}.txt`), "utf8").trim();
}
