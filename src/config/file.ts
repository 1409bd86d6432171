/** sluice.yaml: bytes → a checked value, or all that is wrong with it. */
import { Check } from "typebox/value";
import { checkFile } from "./check.ts";
import { Problems } from "./problem.ts";
import { readValue } from "./read.ts";
import { ConfigurationFile } from "./schema.ts";
import { parseYaml } from "./yaml.ts";

export interface FileText {
  bytes: Uint8Array;
  /** As the operator named it; stands before every problem. */
  path: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** SLUICE_UPSTREAM_URL serves every model, whatever the file says. */
  upstreamFromEnvironment: boolean;
}

export function readConfigurationFile(text: FileText): { file: ConfigurationFile } | { problems: string[] } {
  const problems = new Problems(text.path);
  const yaml = parseYaml(text.bytes, problems);
  if (!yaml) return { problems: problems.lines() };
  if (yaml.root === null) {
    problems.add("", "is empty; remove the file for the defaults, or begin one with: sluice init --upstream URL", null);
    return { problems: problems.lines() };
  }
  const { value, written } = readValue(yaml, ConfigurationFile, text.environment, problems);
  checkFile({ value, written, upstreamFromEnvironment: text.upstreamFromEnvironment }, problems);
  if (problems.any) return { problems: problems.lines() };
  if (!Check(ConfigurationFile, value)) throw new Error("the reader of sluice.yaml passed what its schema refuses");
  return { file: value };
}
