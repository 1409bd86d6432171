/** The keys of `sluice apply`: new ones have their secrets written into files, which nobody else can read. */
import { accessSync, constants, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KeyDifference } from "../management/key-difference.ts";
import type { Management } from "../management/verbs.ts";

/** The folder is checked before anything is made: a secret that has no place would be lost. */
export function secretsFolder(given: string | null): string {
  if (given === null) {
    throw new Error("The file has keys that are to be made. Say where to write their secrets: --secrets FOLDER");
  }
  try {
    accessSync(given, constants.W_OK);
  } catch (cause) {
    throw new Error(`--secrets: ${given} cannot be written to`, { cause });
  }
  if (!statSync(given).isDirectory()) throw new Error(`--secrets: ${given} is not a folder`);
  return given;
}

/** Makes or changes the key, and answers the files that it wrote. Refused where somebody else changed the key meanwhile. */
export async function makeKey(
  manage: Management,
  { slug: organization, key, wanted }: KeyDifference,
  folder: string,
): Promise<string[]> {
  if (key) {
    await manage.updateKey({ id: key.id, version: key.version, ...wanted });
    return [];
  }
  const made = await manage.createKey({ organization, ...wanted });
  const path = join(folder, `${organization}.${made.id}`);
  try {
    writeFileSync(path, `${made.key}\n`, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    const next = `To get another one, run: sluice key rotate ${made.id} --grace 0s`;
    throw new Error(`${path} cannot be written, and the secret of key '${wanted.name}' is lost. ${next}`, { cause });
  }
  return [path];
}
