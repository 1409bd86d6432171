/** Checks that a database accepts the writes of an admission. */
import { answeredWithin, type Database } from "./database.ts";
import { DatabaseError, isReadOnly } from "./database-error.ts";

const triedOn = (db: Database) => db.query("select usage_trial()");

/** Throws a DatabaseError if the database is read-only. */
export async function assertWritable(db: Database): Promise<void> {
  await triedOn(db).catch((error) => {
    if (isReadOnly(error)) throw error;
  });
}

/**
 * The reason why nothing can be admitted; null: admissions work. Resolves within `timeout_ms` and never rejects. Tries
 * to write a row into the table of admissions, and rolls it back: on a read-only database or a full disk, this fails as
 * an admission would.
 */
export async function whyNoAdmission(db: Database, timeout_ms: number): Promise<string | null> {
  try {
    await answeredWithin(triedOn(db), timeout_ms, "the database");
    return null;
  } catch (error) {
    return isReadOnly(error) ? "the database is read-only" : reasonOf(error instanceof DatabaseError ? error.code : "");
  }
}

function reasonOf(code: string): string {
  if (code === "53100") return "the disk of the database is full";
  // 42883, 3F and 42P01 mean that the function or the table does not exist. The check of the schema says more about
  // that.
  if (/^[0-9A-Z]{5}$/.test(code)) return `the database refuses writes (SQLSTATE ${code})`;
  return "the database does not answer";
}
