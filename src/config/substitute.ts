/** `${NAME}` in a string of sluice.yaml stands for an environment variable; `$${` stands for `${` itself. */

export interface Substituted {
  text: string;
  /** One sentence each. They name variables, never their values. */
  problems: string[];
}

export function substitute(text: string, environment: Readonly<Record<string, string | undefined>>): Substituted {
  const problems: string[] = [];
  const result = text.replaceAll(/\$\$\{|\$\{([^{}]*)(\}?)/g, (match, name: string | undefined, end: string) => {
    if (match === "$${") return "${";
    if (end !== "}") {
      problems.push(`has a \${ without a closing }; for a literal \${, write $\${`);
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
