/**
 * PGlite, a Postgres in WebAssembly, with the settings that this service needs. Its files are embedded in the binary.
 * (A wrong option name is not noticed when run from source, and fails only in the binary, so test that.) It is loaded
 * only when it is used. It runs like `postgres --single`: one session and no background processes, so upkeep.ts writes
 * checkpoints and vacuums, and memory is small. It never waits for the disk: confirmed data has been handed to the
 * operating system, so it survives the end of this process, but not a loss of power. If you need that, run a Postgres
 * server.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { PGlite } from "@electric-sql/pglite";

export interface Engine {
  /** The major version. A data folder can only be opened by the version that made it, because their files differ. */
  major: string;
  /** A text that differs between builds of PGlite. */
  identity: string;
  /** Opens a folder. If it does not exist or is empty, initdb fills it first, which takes some seconds. */
  open(folder: string): Promise<PGlite>;
}

const settings = {
  shared_buffers: "8MB",
  max_connections: "4",
  min_wal_size: "4MB",
  max_wal_size: "16MB",
  max_wal_senders: "0",
  max_replication_slots: "0",
  autovacuum: "off",
  TimeZone: "UTC",
};

/** Log segments of 1 MB instead of 16 MB keep the log small enough for a laptop, and keep the seed small. */
const initdbSettings = ["--wal-segsize=1", "--no-sync"];

export async function loadEngine(): Promise<Engine> {
  const [{ PGlite }, postgresWasm, initdbWasm, data] = await Promise.all([
    import("@electric-sql/pglite"),
    import("@electric-sql/pglite/pglite.wasm", { with: { type: "file" } }),
    import("@electric-sql/pglite/initdb.wasm", { with: { type: "file" } }),
    import("@electric-sql/pglite/pglite.data", { with: { type: "file" } }),
  ]);
  const [postgresFile, initdbFile, dataFile] = [postgresWasm, initdbWasm, data].map((file) => Bun.file(file.default));
  const code = await WebAssembly.compile(await postgresFile!.arrayBuffer());
  return {
    major: "18",
    identity: `pglite ${postgresFile!.size} ${dataFile!.size}`,
    async open(folder) {
      const isThere = existsSync(join(folder, "PG_VERSION"));
      return PGlite.create({
        dataDir: folder,
        pgliteWasmModule: code,
        ...(isThere ? {} : { initdbWasmModule: await WebAssembly.compile(await initdbFile!.arrayBuffer()) }),
        fsBundle: dataFile!,
        startParams: [
          ...PGlite.defaultStartParams,
          ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
        ],
        initDbStartParams: initdbSettings,
      });
    },
  };
}

/** Fills an empty folder with an empty database, which stays closed. */
export async function initialise(engine: Engine, folder: string): Promise<void> {
  const pglite = await engine.open(folder);
  // This service creates no databases from the templates, so these would only take space in the seed.
  await pglite.exec("update pg_database set datistemplate = false where datname like 'template%'");
  for (const name of ["template0", "template1"]) await pglite.exec(`drop database ${name}`);
  await pglite.close();
}
