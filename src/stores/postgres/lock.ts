/**
 * Allows only one process in a data folder: two PGlites in one folder destroy it, and nothing in PGlite prevents that.
 * The lock is the operating system's own, on the file `lock`, taken through SQLite, which is part of Bun and locks
 * files on every system. It ends with its process in any case, so a lock is never stale, and it does not matter that
 * process ids mean different things in different containers. The file `holder.json` beside it only tells which process
 * has the lock.
 */
import { Database as LockFile } from "bun:sqlite";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { DatabaseError } from "./database-error.ts";

interface FolderLock {
  /** Releases the lock. Further calls have no effect. */
  release(): void;
}

interface Holder {
  pid: number;
  host: string;
  /** The time of the start (ISO 8601). */
  started_at: string;
}

/**
 * Takes the lock. Throws DatabaseError `in_use`, which names the holder, if another process, or this one, has the
 * folder open.
 */
export function holdFolder(folder: string): FolderLock {
  const holderFile = join(folder, "holder.json");
  const file = locked(folder, holderFile);
  const holder: Holder = {
    pid: process.pid,
    host: hostname(),
    started_at: new Date(performance.timeOrigin).toISOString(),
  };
  try {
    writeFileSync(holderFile, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  } catch {
    // On a full disk the lock is as good without the note.
  }
  let isHeld = true;
  return {
    release() {
      if (!isHeld) return;
      isHeld = false;
      rmSync(holderFile, { force: true });
      file.close();
    },
  };
}

function locked(folder: string, holderFile: string): LockFile {
  let file: LockFile | undefined;
  try {
    file = new LockFile(join(folder, "lock"), { create: true });
    // With its journal in memory, SQLite writes nothing to the disk and creates no second file.
    for (const step of ["pragma busy_timeout = 0", "pragma journal_mode = memory", "begin exclusive"]) file.run(step);
    return file;
  } catch (error) {
    file?.close();
    if (error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY")) {
      throw new DatabaseError(
        `the data folder ${folder} is in use by ${holderOf(holderFile)}; stop it first, or choose another folder`,
        "in_use",
      );
    }
    const why = error instanceof Error ? error.message : String(error);
    throw new DatabaseError(`the data folder ${folder} cannot be locked: ${why}`, "unavailable", { cause: error });
  }
}

/**
 * A text that names the process with the lock. Until the process that took the lock has written the file, the text has
 * no name, or that of a process that has ended.
 */
function holderOf(holderFile: string): string {
  try {
    const { pid, host, started_at } = JSON.parse(readFileSync(holderFile, "utf8")) as Holder;
    if (host !== hostname()) return `process ${pid} on ${host} (since ${started_at})`;
    if (isAlive(pid)) return `process ${pid} (since ${started_at})`;
  } catch {
    // The file was cut short, or does not exist yet.
  }
  return "another process";
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
