// The files that a build creates beside the executable (licence notices, SBOM, checksums) are complete, correct, and
// the same for the same inputs.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv from "ajv";
import { entries } from "../../scripts/entries.ts";
import { noticesOf } from "../../scripts/supply/notices.ts";
import { bundledPackages } from "../../scripts/supply/packages.ts";
import { writePapers } from "../../scripts/supply/papers.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const folders: string[] = [];
let metafile: string;

/** Runs a build like that of a release, without its slow steps. */
beforeAll(async () => {
  const folder = newFolder();
  const words = ["--target=bun", "--format=esm", `--metafile=${folder}/metafile.json`, `--outdir=${folder}/out`];
  const build = Bun.spawn([process.execPath, "build", ...words, ...entries], {
    cwd: root,
    stdout: "ignore",
    stderr: "inherit",
  });
  expect(await build.exited).toBe(0);
  metafile = readFileSync(join(folder, "metafile.json"), "utf8");
});
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-supply-"));
  folders.push(folder);
  return folder;
}

function papers() {
  const folder = newFolder();
  for (const name of ["sluice", "sluice.map", "sluice-linux-arm64", "other"]) writeFileSync(join(folder, name), name);
  writePapers({ folder, version: "1.2.3", metafile });
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  return { folder, notices: read("THIRD_PARTY_NOTICES"), sbom: read("sluice.cdx.json"), sums: read("SHA256SUMS") };
}

const production = Object.keys(
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { dependencies: object }).dependencies,
);

test("every dependency is in both papers, and so are Bun and PGlite's Postgres; what only tests use is in none", () => {
  const { notices, sbom } = papers();
  for (const name of [...production, "Bun", "PostgreSQL"]) expect(notices).toContain(`\n${name} `);
  const names = (JSON.parse(sbom) as { components: { name: string }[] }).components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining([...production, "bun"]));
  expect(sbom).toMatch(/"name": "postgresql",\s+"version": "1\d\.\d+"/);
  for (const name of ["fast-check", "@biomejs/biome", "openai"]) expect(names).not.toContain(name);
});

test("every package of the lock file has its checksum and a licence", () => {
  const { components } = JSON.parse(papers().sbom) as { components: Record<string, unknown>[] };
  for (const { name, hashes, licenses } of components) {
    if (name !== "bun") expect({ name, hashes }).toMatchObject({ hashes: [{ alg: "SHA-512" }] });
    expect({ name, licenses }).toMatchObject({ licenses: [{ license: { id: expect.any(String) } }] });
  }
});

test("the bill of materials is CycloneDX 1.6", () => {
  const schemaOf = (name: string) =>
    JSON.parse(
      readFileSync(
        join(root, `node_modules/@cyclonedx/cyclonedx-library/res/schema/${name}.SNAPSHOT.schema.json`),
        "utf8",
      ),
    ) as object;
  const formats = Object.fromEntries(["date-time", "idn-email", "iri-reference", "string"].map((name) => [name, true]));
  const ajv = new Ajv({ strict: false, formats: formats as Record<string, true> });
  for (const name of ["spdx", "jsf-0.82"])
    ajv.addSchema(schemaOf(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  const isValid = ajv.compile(schemaOf("bom-1.6"));
  const document = JSON.parse(papers().sbom) as Record<string, unknown>;
  expect([isValid(document), isValid.errors]).toEqual([true, null]);
  expect(isValid({ ...document, components: [{ name: "without a type" }] })).toBe(false);
});

test("the checksums are those of the executables and papers, as sha256sum reads them", async () => {
  const { folder, sums } = papers();
  const names = sums
    .trimEnd()
    .split("\n")
    .map((line) => line.split("  ")[1]);
  expect(names).toEqual(["THIRD_PARTY_NOTICES", "sluice", "sluice-linux-arm64", "sluice.cdx.json"]);
  for (const line of sums.trimEnd().split("\n")) {
    const [sum, name] = line.split("  ") as [string, string];
    expect(sum).toBe(new Bun.CryptoHasher("sha256").update(readFileSync(join(folder, name))).digest("hex"));
  }
});

test("the same inputs give the same papers, in whatever order the bundler names them", () => {
  const { folder: _one, ...first } = papers();
  const meta = JSON.parse(metafile) as { inputs: Record<string, unknown> };
  metafile = JSON.stringify({ ...meta, inputs: Object.fromEntries(Object.entries(meta.inputs).reverse()) });
  const { folder: _other, ...second } = papers();
  expect(second).toEqual(first);
});

test("a package whose licence nobody knows stops the build", () => {
  const [one] = bundledPackages(metafile);
  const unknown = { ...one!, name: "unknown", license: "SSPL-1.0", folder: newFolder() };
  expect(() => noticesOf([unknown], { bun: "1", postgres: "1" })).toThrow("'SSPL-1.0' is not in");
});
