// Writes the bill of materials in CycloneDX 1.6 JSON. It has no date and no serial number, so that the same inputs give
// the same bytes.

import type { Package } from "./packages.ts";

interface Contents {
  /** The version of Sluice. */
  version: string;
  packages: readonly Package[];
  bun: string;
  postgres: string;
}

/** The text of the bill of materials. Pure. */
export function sbomOf({ version, packages, bun, postgres }: Contents): string {
  const root = { type: "application", "bom-ref": "sluice", name: "sluice", version };
  const components = [
    ...packages.map((one) =>
      one.name === "@electric-sql/pglite" ? { ...npm(one), components: [database(postgres)] } : npm(one),
    ),
    runtime(bun),
  ];
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { lifecycles: [{ phase: "build" }], component: root },
    components,
    dependencies: [{ ref: "sluice", dependsOn: components.map((one) => one["bom-ref"]) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

interface Component {
  type: "library" | "platform" | "application";
  "bom-ref": string;
  name: string;
  version?: string;
  hashes?: { alg: string; content: string }[];
  licenses?: object[];
  purl?: string;
  components?: Component[];
}

function npm(one: Package, holder = ""): Component {
  const purl = `pkg:npm/${one.name.replace("@", "%40")}${one.version ? `@${one.version}` : ""}`;
  return {
    type: "library",
    "bom-ref": holder + purl,
    name: one.name,
    ...(one.version ? { version: one.version } : {}),
    ...(one.integrity ? { hashes: [{ alg: "SHA-512", content: hex(one.integrity) }] } : {}),
    ...(one.license ? { licenses: [{ license: { id: one.license } }] } : {}),
    purl,
    ...(one.inside.length > 0 ? { components: one.inside.map((it) => npm(it, `${purl}#`)) } : {}),
  };
}

function runtime(version: string): Component {
  const purl = `pkg:github/oven-sh/bun@bun-v${version}`;
  return { type: "platform", "bom-ref": purl, name: "bun", version, licenses: [{ license: { id: "MIT" } }], purl };
}

function database(version: string): Component {
  const licenses = [{ license: { id: "PostgreSQL" } }];
  return { type: "application", "bom-ref": "postgresql", name: "postgresql", version, licenses };
}

function hex(integrity: string): string {
  return Buffer.from(integrity.slice(integrity.indexOf("-") + 1), "base64").toString("hex");
}
