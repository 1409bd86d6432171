// Tests clients that are refused while they send a large body: Node's http and fetch, Python's urllib and requests, and
// curl. Each client must read every refusal, every time. One check is one client, one reason for the refusal and one
// body size.

import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { CannotRun, type Edition, type Ran } from "../edition.ts";
import { pythonFor } from "../virtual-environment.ts";
import { type Case, refusing } from "./cases.ts";

const times = 20;
const limit_ms = 15 * 60_000;

interface Finding {
  client: string;
  reason: string;
  size_mib: number;
  /** How many of the `times` refusals the client read. */
  read: number;
  /** The last failed attempt to read a refusal. */
  failure: string | null;
}

const packages = {
  requirements: join(import.meta.dir, "requirements.txt"),
  meant: ["requests", "urllib3"],
  folder: "refusals",
};

export async function refusalsSuite(edition: Edition): Promise<Ran> {
  const { python, versions } = await pythonFor(packages, edition);
  const [node, curl] = [program("node"), program("curl")];
  const { cases, stop } = await refusing();
  try {
    const given = join(dirname(cases[0]!.body), "given.json");
    writeFileSync(given, JSON.stringify({ cases, times }));
    const findings = [
      ...(await findingsOf([node, join(import.meta.dir, "node_script.mjs")], given)),
      ...(await findingsOf([python, join(import.meta.dir, "python_script.py")], given)),
    ];
    for (const one of cases) findings.push(await byCurl(curl, one));
    for (const { client, reason, size_mib, read, failure } of findings)
      console.log(`${client}, ${reason}, ${size_mib} MiB: ${read} of ${times}${failure ? `, then ${failure}` : ""}`);
    const passed = findings.filter(({ read }) => read === times).length;
    return { counts: { passed, failed: findings.length - passed, skipped: 0 }, versions };
  } finally {
    await stop();
  }
}

function program(name: string): string {
  const found = Bun.which(name);
  if (!found) throw new CannotRun(`There is no ${name} on this machine. Install it.`);
  return found;
}

async function findingsOf(words: string[], given: string): Promise<Finding[]> {
  const { code, stdout, output } = await command(words, { limit_ms, quiet: true, environment: { REFUSALS: given } });
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}:\n${output.slice(-4000)}`);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Finding);
}

async function byCurl(
  curl: string,
  { reason, size_mib, url, method, headers, body, ...meant }: Case,
): Promise<Finding> {
  const fields = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const words = [curl, "-sS", "-X", method, ...fields, "--data-binary", `@${body}`, "-w", "\n%{http_code}", url];
  let read = 0;
  let failure: string | null = null;
  for (let i = 0; i < times; i++) {
    const { code, output } = await command(words, { limit_ms: 60_000, quiet: true });
    const isRead = code === 0 && output.endsWith(`\n${meant.status}`) && output.includes(`"${meant.code}"`);
    if (isRead) read++;
    else failure = `${code} ${output.slice(-200)}`;
  }
  return { client: "curl", reason, size_mib, read, failure };
}
