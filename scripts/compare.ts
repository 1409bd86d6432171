// `npm run compare -- OLD NEW [--count N] [--seed S] [--codes]`: sends the same raw requests, for both API contracts,
// to two executables of the service. Prints each request whose responses differ in more than IDs, secrets and times.
// Exits with 1 if there is one. With --codes, the texts of messages may differ. It is meant for changes that should not
// change behaviour.

import { parseArgs } from "node:util";
import { Draw } from "./compare/draw.ts";
import { ComparedNode } from "./compare/node.ts";
import { faultyRequest, plainRequests, type RawRequest } from "./compare/requests.ts";

const usage = "usage: npm run compare -- OLD NEW [--count N] [--seed S] [--codes], of two executables";
const shown_max = 600;
const context = 80;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      count: { type: "string", default: "1600" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
      codes: { type: "boolean", default: false },
    },
  });
  const [older, newer] = positionals;
  const count = Number(values.count);
  const seed = Number(values.seed);
  if (!older || !newer || !Number.isInteger(count) || !Number.isInteger(seed)) {
    console.error(usage);
    return 2;
  }
  const nodes = await Promise.all(
    [older, newer].map((executable) => ComparedNode.start(executable, { hidesMessages: values.codes })),
  );
  try {
    const differing = await compared(nodes, requestsOf(count, new Draw(seed)));
    console.log(`${count - differing} answered alike, ${differing} not; again with --seed ${seed}`);
    return differing > 0 ? 1 : 0;
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
  }
}

function requestsOf(count: number, draw: Draw): RawRequest[] {
  const requests = plainRequests(draw);
  while (requests.length < count) requests.push(faultyRequest(draw));
  return requests.slice(0, count);
}

async function compared(nodes: ComparedNode[], requests: RawRequest[]): Promise<number> {
  let differing = 0;
  const statuses = new Map<string, number>();
  for (const request of requests) {
    const [old = "", recent = ""] = await Promise.all(nodes.map((node) => node.ask(request)));
    const status = recent.split(/[ \n]/)[1] ?? "none";
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (old === recent) continue;
    differing += 1;
    console.log(
      `--- ${request.head.join("\n    ")}\n${request.body.slice(0, shown_max)}\n${difference(old, recent)}\n`,
    );
  }
  console.log(
    [...statuses]
      .sort()
      .map(([status, times]) => `${times} × ${status}`)
      .join(", "),
  );
  return differing;
}

/**
 * The lines that only one of the two responses has. If it is a single line, it is shown from shortly before the first
 * difference.
 */
function difference(old: string, recent: string): string {
  const before = old.split("\n");
  const after = recent.split("\n");
  const gone = before.filter((line) => !after.includes(line));
  const come = after.filter((line) => !before.includes(line));
  const from = gone.length === 1 && come.length === 1 ? Math.max(0, commonLength(gone[0]!, come[0]!) - context) : 0;
  const excerpt = (line: string) => `${from > 0 ? "…" : ""}${line.slice(from, from + shown_max)}`;
  return [...gone.map((line) => `- ${excerpt(line)}`), ...come.map((line) => `+ ${excerpt(line)}`)].join("\n");
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

process.exit(await main());
