// `npm run histories -- --count N --seed S`: simulates N histories (random sequences of events) of a node's metering,
// from seed S on. Prints the number of histories, and the first violation of a rule with its shortest replay. Exits
// with 1 if there was a violation.
// - `--keep` runs such a replay.
// - `--teeth` disables each rule of the protocol in turn, and shows that the histories detect that.
// - `--administration stored` tests changes of people and operators on Postgres instead, and `own-limits` changes of
//   limits by an organization's administrators.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { type AdministrationOptions, kinds, runAdministration } from "../test/histories/administration/run.ts";
import { runHistory } from "../test/histories/history.ts";
import { allMutations } from "../test/histories/mutations-of-changes.ts";
import { reportOf } from "../test/histories/report.ts";
import { keepOf, shortest } from "../test/histories/shrink.ts";
import { caught } from "../test/histories/teeth.ts";

const usage = `usage: npm run histories -- [--count N] [--seed S] [--keep "…" | --administration ${kinds.join("|")}] | --teeth
  N histories (1000) from seed S (1) on; whole numbers, N at least 1.`;
const print_every_ms = 10_000;
const plain = { head: [], border: [] };

async function main(): Promise<number> {
  const asked = options();
  if (!asked) {
    console.error(usage);
    return 2;
  }
  if (asked.teeth) return teeth();
  if (asked.administration) return administration(asked.administration, asked.seed, asked.count);
  return asked.keep === undefined ? many(asked.seed, asked.count) : again(asked.seed, asked.keep);
}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        count: { type: "string", default: "1000" },
        seed: { type: "string", default: "1" },
        keep: { type: "string" },
        administration: { type: "string" },
        teeth: { type: "boolean", default: false },
      },
    });
    const [count, seed] = [Number(values.count), Number(values.seed)];
    if (!Number.isInteger(count) || count < 1 || !Number.isInteger(seed)) return null;
    const administration = kinds.find((kind) => kind === values.administration);
    if (values.administration !== undefined && !administration) return null;
    return { ...values, administration, count, seed };
  } catch {
    return null;
  }
}

async function administration(kind: AdministrationOptions["kind"], first: number, count: number): Promise<number> {
  const began = performance.now();
  let lastPrinted_ms = began;
  const done = (histories: number) => {
    if (performance.now() - lastPrinted_ms < print_every_ms) return;
    lastPrinted_ms = performance.now();
    console.log(`${histories} histories, none broken`);
  };
  const run = await runAdministration({ first, count, kind, done });
  const { histories, acts, refusals, violation } = run;
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const table = new Table({ style: plain });
  table.push({ histories }, { acts }, { "acts refused": refusals }, { seconds }, { "broken rules": violation ? 1 : 0 });
  console.log(table.toString());
  if (violation) console.log(violation);
  return violation ? 1 : 0;
}

function many(first: number, count: number): number {
  const began = performance.now();
  const totals = new Map<string, number>();
  let steps = 0;
  let done = 0;
  let lastPrinted_ms = began;
  const took_s = () => (performance.now() - began) / 1000;
  for (let seed = first; seed < first + count; seed++) {
    const history = runHistory(seed);
    done += 1;
    steps += history.steps;
    for (const [name, number] of Object.entries(history.counts)) totals.set(name, (totals.get(name) ?? 0) + number);
    if (history.violation) break;
    if (performance.now() - lastPrinted_ms < print_every_ms) continue;
    lastPrinted_ms = performance.now();
    console.log(`${done} histories in ${took_s().toFixed(0)} s, none broken`);
  }
  const broken = shortest(first + done - 1);
  const table = new Table({ style: plain });
  table.push(
    { histories: done },
    { steps },
    { seconds: took_s().toFixed(1) },
    { "histories a minute": Math.round((done * 60) / took_s()) },
    ...[...totals].map(([name, number]) => ({ [name]: number })),
    { "broken rules": broken ? 1 : 0 },
  );
  console.log(table.toString());
  if (broken) console.log(reportOf(broken));
  return broken ? 1 : 0;
}

function again(seed: number, words: string): number {
  const keep = keepOf(words);
  if (!keep) {
    console.error(`--keep is what a violation's report says, such as "requests=1,4 faults=0", not "${words}"`);
    return 2;
  }
  const broken = shortest(seed, { keep });
  console.log(broken ? reportOf(broken) : `seed ${seed}, with so much kept, breaks no rule`);
  return broken ? 1 : 0;
}

function teeth(): number {
  const histories_max = 5_000;
  const table = new Table({ head: ["rule", "taken out", "seen as", "after histories"], style: plain });
  let missed = 0;
  for (const [name, { rule }] of Object.entries(allMutations)) {
    const found = caught(name, histories_max);
    if (!found) missed += 1;
    table.push([rule, name, found?.violation.rule ?? "nothing", found?.histories ?? `none of ${histories_max}`]);
  }
  console.log(table.toString());
  return missed > 0 ? 1 : 0;
}

process.exit(await main());
