// Finds gateways that are Python programs, each in a virtual environment, by an environment variable.

import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

export interface PythonProgram {
  /** Returns the path of the program. Throws an error that says which variable to set. */
  path(): string;
  version(): Promise<string>;
}

/** The program that the environment variable names. `made` is an example of its path in a virtual environment. */
export function pythonProgram(variable: string, distribution: string, made: string): PythonProgram {
  const path = () => {
    const named = process.env[variable];
    if (named) return named;
    throw new Error(`Set ${variable} to its program, such as ${made} of a virtual environment that has it.`);
  };
  return {
    path,
    async version() {
      const script = `import importlib.metadata as m; print(m.version('${distribution}'))`;
      return (await promisify(execFile)(join(dirname(path()), "python"), ["-c", script])).stdout.trim();
    },
  };
}
