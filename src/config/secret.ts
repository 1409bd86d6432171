/** Reads secrets and certificates from files. Messages have the file's name, never its content. */
import { secretVariables } from "./settings/variables.ts";
import { type ReadFile, reasonOf, utf8Text } from "./source.ts";

/** The largest size of a secret's file. Secrets are far shorter, so a longer file is the wrong one. */
const secret_bytes_max = 64 * 1024;

type FileText = { text: string } | { problem: string };

/**
 * Reads the text of a file, or returns the `problem`: words that follow the file's name in a message, such as `which is
 * empty`.
 */
export function fileText(path: string, readFile: ReadFile, bytes_max: number): FileText {
  let bytes: Uint8Array | null;
  try {
    bytes = readFile(path);
  } catch (cause) {
    return { problem: `which cannot be read: ${reasonOf(cause)}` };
  }
  if (bytes === null) return { problem: "which does not exist" };
  if (bytes.byteLength > bytes_max) return { problem: `which is larger than ${bytes_max / 1024} KiB` };
  const text = utf8Text(bytes);
  if (text === null) return { problem: "which is not UTF-8 text" };
  return text.trim() === "" ? { problem: "which is empty" } : { text };
}

/** The text of a file without the line break at its end, which editors and `echo` add. */
export function secretText(path: string, readFile: ReadFile): FileText {
  const found = fileText(path, readFile, secret_bytes_max);
  return "text" in found ? { text: found.text.replace(/\r?\n$/, "") } : found;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the environment, completed with secrets from files: if `NAME_FILE` names a file, its secret becomes the value
 * of `NAME`. Also returns the problems of these files.
 */
export function withSecrets(
  environment: Environment,
  readFile: ReadFile,
): { environment: Environment; problems: string[] } {
  const filled: Record<string, string | undefined> = { ...environment };
  const problems: string[] = [];
  for (const name of secretVariables) {
    const path = environment[`${name}_FILE`]?.trim();
    if (!path) continue;
    if (environment[name]?.trim()) {
      problems.push(`${name}_FILE and ${name} are both set; remove one`);
      continue;
    }
    const found = secretText(path, readFile);
    if ("text" in found) filled[name] = found.text;
    else problems.push(`${name}_FILE names ${path}, ${found.problem}`);
  }
  return { environment: filled, problems };
}
