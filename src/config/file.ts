/** Reads the bytes of sluice.yaml into a checked value, or into all of its problems. */
import type { Path } from "../core/schema/walk.ts";
import { amountsAsWritten } from "./amount.ts";
import { reportOffences } from "./diagnose.ts";
import type { Environment } from "./environment.ts";
import { Problems } from "./problem.ts";
import { brokenRules, fits } from "./rules.ts";
import { ConfigurationFile } from "./settings/file.ts";
import type { ReadFile } from "./source.ts";
import { readYaml } from "./yaml.ts";

interface ConfigurationText {
  bytes: Uint8Array;
  /** The path as the operator wrote it, with which every problem begins. */
  path: string;
  environment: Environment;
  /** Reads the files that `${file:…}` names. */
  readFile: ReadFile;
  /** Whether SLUICE_UPSTREAM_URL serves every model in place of the file's routes. */
  upstreamFromEnvironment: boolean;
}

export function readConfigurationFile(text: ConfigurationText): { file: ConfigurationFile } | { problems: string[] } {
  const problems = new Problems(text.path);
  const yaml = readYaml(text.bytes, text, problems);
  if (yaml?.empty) {
    problems.add(
      [],
      "is empty; remove the file to use the defaults, or create one with: sluice init --upstream URL",
      null,
    );
  } else if (yaml) {
    const offences = reportOffences(ConfigurationFile, yaml, problems);
    for (const { kind, path } of offences) if (kind === "unknown" || kind === "misnamed") remove(yaml.value, path);
    const reported = new Set(offences.map(({ path }) => path.join(".")));
    for (const [path, message] of amountsAsWritten(ConfigurationFile, yaml))
      if (!reported.has(path.join("."))) problems.add(path, message, yaml.locate(path).place);
    for (const [path, message] of brokenRules(yaml.value, text.upstreamFromEnvironment))
      problems.add(path, message, yaml.locate(path).place);
    if (!problems.any && fits<ConfigurationFile>(ConfigurationFile, yaml.value)) return { file: yaml.value };
    if (!problems.any) throw new Error("sluice.yaml does not match its schema");
  }
  return { problems: problems.lines() };
}

/** Removes an unknown field after it was reported, so that the rest is checked without it. */
function remove(value: unknown, path: Path): void {
  const around = path.slice(0, -1).reduce<unknown>((at, step) => Object(at)[step], value);
  Reflect.deleteProperty(Object(around), path.at(-1)!);
}
