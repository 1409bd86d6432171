/**
 * PGlite, a Postgres in WebAssembly, as this service runs it. Its files are embedded in the binary (a wrong option name
 * goes unnoticed from source and fails only there: the compiled binary is what to test). It is loaded only when used.
 *
 * It runs like `postgres --single`: one session, no background process. So nobody else writes checkpoints or vacuums
 * (upkeep.ts does), and memory is small. It never waits for the disk: what is confirmed has been handed to the operating
 * system, so it survives the death of this process, but not a loss of power. Who needs that runs a Postgres server.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { PGlite } from "@electric-sql/pglite";

export interface Engine {
  /**
   * The major version. A data folder must be opened by the one that made it, since Postgres's files differ between
   * them.
   */
  major: string;
  /** Differs between builds of PGlite. */
  identity: string;
  /** Opens a folder; one that does not exist or is empty is first filled by initdb, which takes some seconds. */
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

/** Log segments of 1 MB, not 16, make a log that fits a laptop, and a small seed. */
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

/** Fills an empty folder with an empty database, and leaves it closed. */
export async function initialise(engine: Engine, folder: string): Promise<void> {
  const pglite = await engine.open(folder);
  // Nobody makes databases here, so the templates for new ones only take room.
  await pglite.exec("update pg_database set datistemplate = false where datname like 'template%'");
  for (const name of ["template0", "template1"]) await pglite.exec(`drop database ${name}`);
  await pglite.close();
}
