// Gets the programs of real identity providers: Dex is compiled from its Go module, and Keycloak is a zip file from
// Maven.

import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { CannotRun, type Edition } from "../edition.ts";
import { succeed } from "../virtual-environment.ts";

/**
 * Dex's version as a Go pseudo-version: Go's proxy has no tags of Dex since 2.13, because its module path has no `/v2`.
 */
const dexCommit = "v0.0.0-20260806151424-ab64ed778070";
const dexPackage = "github.com/dexidp/dex/cmd/dex";
/**
 * The Go module of Dex's API, a separate module in the same repository. Dex's own module refers to it by a relative
 * folder that the downloaded archive does not contain.
 */
const dexInterface = "github.com/dexidp/dex/api/v2";
const keycloakVersion = "26.7.3";
const keycloakArtifact = "org.keycloak:keycloak-quarkus-dist";

export interface Installed {
  /** The path of the program, or of the folder that contains it. */
  path: string;
  version: string;
}

const compile_ms = 30 * 60_000;
const cache = join(process.cwd(), ".cache/clients");

/** Returns Dex's program. The environment variable `DEX` may name one that was built elsewhere, such as a release's. */
export async function dexProgram(edition: Edition): Promise<Installed> {
  if (process.env.DEX) return { path: process.env.DEX, version: process.env.DEX };
  const go = Bun.which("go") ?? "/usr/local/go/bin/go";
  if (!existsSync(go)) throw new CannotRun("There is no Go here, which compiles Dex.");
  const folder = join(cache, "dex", edition);
  const path = join(folder, "dex");
  if (edition === "newest" || !existsSync(path)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "go.mod"), "module dex.test\n");
    const version = edition === "pinned" ? dexCommit : "master";
    const commit = edition === "pinned" ? dexCommit.split("-").at(-1)! : "master";
    const wanted = [`${dexPackage}@${version}`, `${dexInterface}@${commit}`];
    await succeed([go, "get", "-C", folder, ...wanted], "Dex could not be fetched");
    await succeed([go, "build", "-C", folder, "-o", path, dexPackage], "Dex could not be compiled", compile_ms);
  }
  const asked = await command([go, "list", "-C", folder, "-m", "github.com/dexidp/dex"], {
    ...{ limit_ms: 60_000, quiet: true },
  });
  return { path, version: asked.stdout.trim().split("/").at(-1)! };
}

export async function keycloakFolder(edition: Edition): Promise<Installed> {
  const maven = Bun.which("mvn");
  if (maven === null || Bun.which("java") === null || Bun.which("unzip") === null)
    throw new CannotRun("There is no Maven, Java or unzip here, which Keycloak needs.");
  const version = edition === "pinned" ? keycloakVersion : "RELEASE";
  const folder = join(cache, "keycloak", edition);
  if (edition === "newest" || !existsSync(folder)) {
    const download = `${folder}.download`;
    for (const one of [folder, download]) rmSync(one, { recursive: true, force: true });
    mkdirSync(download, { recursive: true });
    const words = [
      maven,
      "--batch-mode",
      "--quiet",
      "dependency:copy",
      `-Dartifact=${keycloakArtifact}:${version}:zip`,
    ];
    await succeed([...words, `-DoutputDirectory=${download}`], "Keycloak could not be fetched");
    const [zip] = [...new Bun.Glob("*.zip").scanSync({ cwd: download })];
    await succeed(["unzip", "-q", join(download, zip!), "-d", download], "Keycloak could not be unpacked");
    const [unpacked] = [...new Bun.Glob("keycloak-*/").scanSync({ cwd: download, onlyFiles: false })];
    // Keycloak writes into its own folder, and the tests run services as a user other than root.
    await succeed(["chmod", "-R", "a+rwX", join(download, unpacked!)], "Keycloak's folder could not be opened");
    renameSync(join(download, unpacked!), folder);
    rmSync(download, { recursive: true, force: true });
  }
  const text = await Bun.file(join(folder, "version.txt")).text();
  return { path: folder, version: text.replace(/^Keycloak - Version /, "").trim() };
}
