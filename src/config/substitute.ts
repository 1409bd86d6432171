/**
 * Replaces references in the strings of sluice.yaml: `${NAME}` by an environment variable, `${file:PATH}` by the text
 * of a file, and `$${` by `${` itself.
 */
import { secretText } from "./secret.ts";
import type { ReadFile } from "./source.ts";

export interface SubstituteSources {
  environment: Readonly<Record<string, string | undefined>>;
  readFile: ReadFile;
}

interface Substituted {
  text: string;
  /** The problems, a sentence each. They name variables and files, never their contents. */
  problems: string[];
}

export function substitute(text: string, { environment, readFile }: SubstituteSources): Substituted {
  const problems: string[] = [];
  const result = text.replaceAll(/\$\$\{|\$\{([^{}]*)(\}?)/g, (match, name: string | undefined, end: string) => {
    if (match === "$${") return "${";
    if (end !== "}") {
      problems.push(`has a \${ without a closing }; for a literal \${, write $\${`);
    } else if (name?.startsWith("file:")) {
      const path = name.slice("file:".length).trim();
      const found = path === "" ? { problem: "which needs the path of a file" } : secretText(path, readFile);
      if ("text" in found) return found.text;
      problems.push(`names \${file:${path}}, ${found.problem}`);
    } else if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name ?? "")) {
      problems.push(`has a \${…} without the name of an environment variable (letters, digits and _)`);
    } else {
      const value = Object.hasOwn(environment, name!) ? environment[name!] : undefined;
      if (value) return value;
      problems.push(`needs the environment variable ${name}, which is ${value === "" ? "empty" : "not set"}`);
    }
    return "";
  });
  return { text: result, problems };
}
