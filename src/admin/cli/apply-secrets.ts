/**
 * The folder of `sluice apply --secrets`: the secret of each new key in a file of its own, which nobody else can read.
 * A journal in the folder names each key before the key is created. So after a run that was cut off, the next run
 * recognises keys whose secrets were not written, and gives them new secrets.
 */
import { accessSync, appendFileSync, constants, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Saver } from "../management/apply/perform.ts";
import type { Step } from "../management/apply/step.ts";
import type { Key } from "../management/key.ts";
import { codeOf } from "./calling.ts";
import { writeWhole } from "./write-whole.ts";

export interface SecretsFolder {
  /** Whether an earlier run created the key, its secret was never written, and it was never used. */
  isLost(key: Pick<Key, "id" | "organization" | "name" | "lastUsedAt">): boolean;
  /** Opens the folder for the secrets of new keys. Throws an Error while another process has it open. */
  open(): Saver;
  /** Ends a successful run, in which every step was done. */
  close(): void;
}

const journalName = "apply.journal";

/** Checks the folder before any key is created: a secret that could not be written would be lost. */
export function secretsFolder(folder: string): SecretsFolder {
  try {
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    throw new Error(`--secrets: ${folder} cannot be written to`, { cause });
  }
  if (!statSync(folder).isDirectory()) throw new Error(`--secrets: ${folder} is not a folder`);
  const journal = join(folder, journalName);
  const pathOf = (organization: string, id: string) => join(folder, `${organization}.${id}`);
  const before = readJournal(journal);
  return {
    isLost: ({ id, organization, name, lastUsedAt }) =>
      before.keys.has(lineOf(organization, name)) && lastUsedAt === null && !existsSync(pathOf(organization, id)),
    open() {
      const { pid } = readJournal(journal);
      if (pid !== null && pid !== process.pid && isAlive(pid)) {
        throw new Error(
          `process ${pid} writes secrets into ${folder} now; wait until it has ended, or use another folder`,
        );
      }
      const begun = new Set(before.keys);
      const write = () => writeWhole(journal, [String(process.pid), ...begun, ""].join("\n"));
      write();
      return {
        begin({ organization, name }) {
          const line = lineOf(organization, name);
          begun.add(line);
          appendFileSync(journal, `${line}\n`);
        },
        refused({ organization, name }) {
          const line = lineOf(organization, name);
          if (before.keys.has(line)) return;
          begun.delete(line);
          write();
        },
        save(step, { id, key }) {
          const path = pathOf(step.organization ?? "", id);
          saveSecret(path, step, { id, secret: key });
          return path;
        },
      };
    },
    close: () => rmSync(journal, { force: true }),
  };
}

function saveSecret(path: string, { name }: Step, { id, secret }: { id: string; secret: string | null }): void {
  try {
    writeWhole(path, `${secret}\n`);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const next = `Run the same command again: it gives the key a new secret. Or run: sluice key rotate ${id} --grace 0s`;
    throw new Error(`the secret of key '${name}' cannot be written (${why}), and is lost. ${next}`, { cause });
  }
}

const lineOf = (organization: string | null, name: string) => JSON.stringify([organization, name]);

/** The ID of the process that last wrote the journal, and the lines of the keys whose creation had begun. */
function readJournal(path: string): { pid: number | null; keys: Set<string> } {
  if (!existsSync(path)) return { pid: null, keys: new Set() };
  const [pid = "", ...keys] = readFileSync(path, "utf8").split("\n");
  return { pid: Number.parseInt(pid, 10) || null, keys: new Set(keys.filter((line) => line !== "")) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    // EPERM: the process exists, but belongs to another user.
    return codeOf(cause) === "EPERM";
  }
}
