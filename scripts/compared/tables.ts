// The definition of each comparison: the command for each gateway, and how the cells of its table are extracted from
// the output.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { versions } from "../../bench/speed/others.ts";
import { anyLlm } from "../../proof/targets/any-llm/target.ts";
import { hardcap } from "../../proof/targets/hardcap/target.ts";
import { npmRun } from "../command.ts";

export interface Found {
  /** The cells of the gateway, by the name of the row (or column) of the table. */
  cells: Record<string, string>;
  /** The number by which gateways are ranked. */
  score: number;
}

interface Ran {
  words: string[];
  /** Returns the gateway's version at the time of the run. */
  version(at: Date): string | Promise<string>;
  made: string;
}

export interface Table {
  id: string;
  /** Whether the table has a column for each gateway; otherwise it has a row for each. */
  isWide: boolean;
  gateways: Record<string, Ran>;
  best: "most" | "least";
  /** The unit of the scores, as text that follows them on the page. */
  unit: string;
  /** The file that the command writes and `found` parses; if absent, `found` parses the output. */
  file?: string;
  found(output: string): Found;
}

const wheel = "PyPI";
const made = {
  sluice: "checkout",
  litellm: "PyPI, by [litellm.txt](../bench/speed/litellm.txt)",
  portkey: "npm",
};
const ofPackages = {
  sluice: (at: Date) => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    const words = ["log", "-1", "--format=%h", `--before=${at.toISOString()}`];
    return `${version}+${execFileSync("git", words, { encoding: "utf8" }).trim()}`;
  },
  litellm: () => versions.litellm,
  portkey: () => versions.portkey,
};

type Name = keyof typeof made;

const ran = (name: Name, words: string[]): Ran => ({ words, version: ofPackages[name], made: made[name] });
const threeOf = (words: (name: Name) => string[]): Record<string, Ran> =>
  Object.fromEntries((["sluice", "litellm", "portkey"] as const).map((name) => [name, ran(name, words(name))]));

const failover: Table = {
  id: "failover",
  isWide: true,
  gateways: {
    ...threeOf((name) => [...npmRun, "failover", "--", name]),
    "sluice with continue": ran("sluice", [...npmRun, "failover", "--", "sluice", "--continue"]),
  },
  best: "most",
  unit: "of FailoverBench's 16 passed",
  found(output) {
    const rows = [...output.matchAll(/^(s\d\d) +(.+)$/gm)].map(([, fault, rest]) => [fault!, ...rest!.split(/ ?\| ?/)]);
    const cells = rows.map(([fault, streamed, whole]) => {
      const isSame = whole === "" || whole === streamed;
      return [fault!.toUpperCase(), isSame ? streamed! : `${streamed}; ${whole}`] as const;
    });
    const passed = Number(/(\d+) pass\b/.exec(output)?.[1] ?? 0);
    return { cells: { ...Object.fromEntries(cells.sort()), passed: `${passed} of ${rows.length}` }, score: passed };
  },
};

const clients: Table = {
  id: "clients",
  isWide: true,
  gateways: threeOf((name) => [...npmRun, "peers", "--", name]),
  best: "most",
  unit: "things that work",
  found(output) {
    const rows = [...output.matchAll(/^(\S.*?): (works|FAILS: .*)$/gm)];
    const cells = rows.map(([, title, says]) => [title!, says === "works" ? says : `**fails**: ${excerpt(says!)}`]);
    return { cells: Object.fromEntries(cells), score: rows.filter(([, , says]) => says === "works").length };
  },
};

const excerpt = (says: string) => says.slice("FAILS: ".length, 110).replaceAll("|", "/").replaceAll("`", "'");

const firstLoad: Table = {
  id: "console",
  isWide: false,
  gateways: threeOf((name) => [...npmRun, "peers", "--", name, "console"]),
  best: "least",
  unit: "KB",
  found(output) {
    const [, size, requests, elsewhere] = /: ([\d.]+) KB \(gzip\) in (\d+) requests; (.*)$/m.exec(output)!;
    const hosts = elsewhere === "no other host" ? "none" : elsewhere!.replace("asks ", "");
    const kilobytes = Math.round(Number(size));
    return { cells: { gzip: `${kilobytes} KB`, requests: requests!, "other hosts": hosts }, score: kilobytes };
  },
};

const conformance: Table = {
  id: "conformance",
  isWide: false,
  gateways: Object.fromEntries(
    (["sluice", "litellm"] as const).map((name) => [name, ran(name, ["bun", "scripts/compared/conformance.ts", name])]),
  ),
  best: "most",
  unit: "rules kept",
  found(output) {
    const sum = (result: string) =>
      [...output.matchAll(new RegExp(`(\\d+) (?:rules )?${result}`, "g"))].reduce(
        (all, [, one]) => all + Number(one),
        0,
      );
    const [kept, broken, unchecked] = ["kept", "broken", "unchecked"].map(sum) as [number, number, number];
    return { cells: { kept: `${kept}`, broken: `${broken}`, "not checked": `${unchecked}` }, score: kept };
  },
};

const crashFile = ".cache/compared-crash.json";

const crashed = (name: string, made: string): Ran => ({
  words: [...npmRun, "proof", "--", "--target", name, "--faults", "100", "--seed", "740113", "--json", crashFile],
  version: () => "",
  made,
});

interface Crashes {
  seed: number;
  faults: number;
  requests: number;
  refused: number;
  findings: { verdict: string; tokens: number }[];
}

const verdicts = ["lost", "overspent", "doubled", "leaked", "charged without delivery", "unexplained"];

/** The crash test. Its file has the results of several runs, as a JSON array. */
const crash: Table = {
  id: "crash",
  isWide: true,
  gateways: {
    sluice: { ...crashed("sluice", made.sluice), version: ofPackages.sluice },
    litellm: {
      ...crashed("litellm", `${made.litellm}; Prisma's engine [in WebAssembly](../proof/targets/litellm)`),
      version: ofPackages.litellm,
    },
    hardcap: { ...crashed("hardcap", wheel), version: hardcap.version },
    "any-llm": { ...crashed("any-llm", wheel), version: anyLlm.version },
  },
  best: "least",
  unit: "keys of 10,000 requests lost or overspent",
  file: crashFile,
  found(output) {
    const runs = [JSON.parse(output) as Crashes | Crashes[]].flat();
    const total = (of: (run: Crashes) => number) => runs.reduce((sum, run) => sum + of(run), 0);
    const findings = runs.flatMap((run) => run.findings);
    const cells = verdicts.map((verdict) => {
      const found = findings.filter((one) => one.verdict === verdict);
      const tokens = found.reduce((sum, one) => sum + one.tokens, 0);
      return [
        verdict,
        found.length === 0 ? "0" : `${found.length} ${found.length === 1 ? "key" : "keys"}, ${tokens} tokens`,
      ] as const;
    });
    const wrong = findings.filter(({ verdict }) => verdict === "lost" || verdict === "overspent").length;
    const faults = runs.map((run) => `${run.faults} (seed ${run.seed})`).join(", ");
    const counts = { faults, requests: `${total((run) => run.requests)}`, refused: `${total((run) => run.refused)}` };
    return {
      cells: { ...counts, ...Object.fromEntries(cells) },
      score: Math.round(
        (wrong * 10_000) /
          Math.max(
            1,
            total((run) => run.requests),
          ),
      ),
    };
  },
};

export const tables: readonly Table[] = [crash, failover, conformance, clients, firstLoad];
