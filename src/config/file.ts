/** sluice.yaml: bytes → a checked value, or all that is wrong with it. */
import { offences, type Path } from "../schema/walk.ts";
import { messageFor } from "./diagnose.ts";
import type { Environment } from "./environment.ts";
import { Problems, problems_kept_max } from "./problem.ts";
import { brokenRules, fits } from "./rules.ts";
import { ConfigurationFile } from "./settings/file.ts";
import type { ReadFile } from "./source.ts";
import { readYaml } from "./yaml.ts";

export interface FileText {
  bytes: Uint8Array;
  /** As the operator named it; stands before every problem. */
  path: string;
  environment: Environment;
  /** For `${file:…}`. */
  readFile: ReadFile;
  /** SLUICE_UPSTREAM_URL serves every model, whatever the file says. */
  upstreamFromEnvironment: boolean;
}

export function readConfigurationFile(text: FileText): { file: ConfigurationFile } | { problems: string[] } {
  const problems = new Problems(text.path);
  const yaml = readYaml(text.bytes, text, problems);
  if (yaml?.empty) {
    problems.add(
      [],
      "is empty; remove the file to use the defaults, or create one with: sluice init --upstream URL",
      null,
    );
  } else if (yaml) {
    for (const offence of offences(ConfigurationFile, yaml.value, problems_kept_max)) {
      const { node, place, namePlace } = yaml.locate(offence.path);
      const atName = offence.kind === "unknown" || offence.kind === "misnamed";
      problems.add(offence.path, messageFor(offence, node), atName ? namePlace : place);
      if (atName) remove(yaml.value, offence.path);
    }
    for (const [path, message] of brokenRules(yaml.value, text.upstreamFromEnvironment))
      problems.add(path, message, yaml.locate(path).place);
    if (!problems.any && fits<ConfigurationFile>(ConfigurationFile, yaml.value)) return { file: yaml.value };
    if (!problems.any) throw new Error("sluice.yaml does not match its schema");
  }
  return { problems: problems.lines() };
}

/** An unknown field is said once; what stands beside it is checked on without it. */
function remove(value: unknown, path: Path): void {
  const around = path.slice(0, -1).reduce<unknown>((at, step) => Object(at)[step], value);
  Reflect.deleteProperty(Object(around), path.at(-1)!);
}
