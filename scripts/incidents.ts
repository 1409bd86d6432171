// `npm run incidents`: causes a real incident for each alert of deploy/prometheus, on two or three nodes with Postgres,
// Redis and engines. Debian's Prometheus evaluates the same rules with their durations cut to a thirtieth. The alert
// must not fire before the incident, must fire while it lasts, and must end when it is fixed. The signs that the
// alert's section of the runbook names must show. The incident's notices must arrive once in channels like those of
// Slack and Teams, and by mail.
//
// `-- WORD` runs only the incidents whose description contains the word. `-- --pictures FOLDER` draws the dashboards of
// the run as SVG.

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { parse } from "yaml";
import { until } from "../test/harness/until.ts";
import type { Incident, Sign } from "./incidents/incident.ts";
import { trickle } from "./incidents/load.ts";
import { arrived, counted, repeated } from "./incidents/notices.ts";
import { ofAnswers } from "./incidents/of-answers.ts";
import { ofEngines } from "./incidents/of-engines.ts";
import { ofNodes } from "./incidents/of-nodes.ts";
import { ofOrganizations } from "./incidents/of-organizations.ts";
import { ofStores } from "./incidents/of-stores.ts";
import { drawDashboards } from "./incidents/pictures.ts";
import { type Site, sound, startSite } from "./incidents/site.ts";
import { rulesFolder } from "./prometheus/server.ts";

/** Groups of incidents. Those of a group run concurrently, because they take long and do not affect each other. */
const groups: Incident[][] = [
  [ofStores.tampered, ofStores.upkeepHindered, ofEngines.slow],
  [ofNodes.killed],
  [ofStores.frozen],
  [ofEngines.dead],
  [ofEngines.refusing, ofNodes.keysTried],
  [ofEngines.lying, ofNodes.workerUnstarted],
  [ofEngines.hanging, ofStores.forgetful],
  [ofEngines.full],
  // This incident runs alone, because the commands of its runbook section need database connections of their own.
  [ofStores.connectionsEnded],
  [ofStores.redisAway],
  [ofAnswers.logsForgotten, ofAnswers.manyKept, ofAnswers.manySockets],
  [ofNodes.connectionsLeftOpen],
  [ofNodes.halted],
  [ofNodes.otherConfiguration, ofEngines.forgotten],
  [ofOrganizations.usedUp, ofOrganizations.straying],
];
/** How long alerts may take to fire and to end, because Prometheus scrapes and responds late on a busy machine. */
const [fires_ms, ends_ms] = [150_000, 150_000];

interface Outcome {
  alert: string;
  fired_s: number | null;
  ended_s: number | null;
  sign: Sign;
}

/** The results of an incident's alerts, and the problems with its notices. */
interface Happened {
  alerts: Outcome[];
  notices: string[];
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: Bun.argv.slice(2),
    allowPositionals: true,
    options: { pictures: { type: "string" } },
  });
  const [word = ""] = positionals;
  const site = await startSite();
  const began_ms = Date.now();
  const load = site.nodes.map((node) => trickle(node, { model: sound, directives: "tokens=8", stream: true }, 3));
  const table = new Table({
    head: ["incident", "alert", "fires after", "ends after", "the runbook names", "shows"],
    style: { head: [], border: [] },
    wordWrap: true,
    colWidths: [34, 28, 10, 10, 40, 7],
  });
  const outcomes: Outcome[] = [];
  const missed: string[] = [];
  try {
    for (const group of groups) {
      const chosen = group.filter(({ what }) => what.includes(word));
      const all = await Promise.all(chosen.map(async (incident) => ({ incident, own: await happen(site, incident) })));
      for (const { incident, own } of all) {
        outcomes.push(...own.alerts);
        missed.push(...own.notices.map((problem) => `${incident.what}: ${problem}`));
        for (const { alert, fired_s, ended_s, sign } of own.alerts)
          table.push([incident.what, alert, seconds(fired_s), seconds(ended_s), sign[0], sign[1] ? "yes" : "NO"]);
      }
      console.log(`${chosen.map(({ what }) => what).join("; ")}: done`);
    }
    if (values.pictures) await drawDashboards(site.prometheus, began_ms, values.pictures);
  } catch (cause) {
    console.log(cause);
    outcomes.push({ alert: "", fired_s: null, ended_s: null, sign: ["", false] });
  } finally {
    for (const one of load) await one.stop();
    await site.stop();
  }
  console.log(table.toString());
  for (const problem of missed) console.log(`notices: ${problem}`);
  const without = word ? [] : await alertsWithout(outcomes);
  if (without.length > 0) console.log(`no incident: ${without.join(", ")}`);
  const isWell = outcomes.every(({ fired_s, ended_s, sign }) => fired_s !== null && ended_s !== null && sign[1]);
  process.exit(isWell && without.length === 0 && missed.length === 0 ? 0 : 1);
}

const seconds = (value: number | null) => (value === null ? "NEVER" : `${value.toFixed(0)} s`);

async function happen(site: Site, { what, alerts, begin }: Incident): Promise<Happened> {
  const firing = async () => {
    const series = await site.prometheus.query('ALERTS{alertstate="firing"}');
    return new Set(series.map(({ metric }) => metric.alertname));
  };
  // Whether none of the incident's alerts is firing now; an earlier incident may have caused one.
  const isQuiet = async () => {
    const now = await firing();
    return !alerts.some((alert) => now.has(alert));
  };
  await until(isQuiet, ends_ms, `all to be quiet before ${what}`);
  const began = performance.now();
  const before = counted(site);
  const underway = await begin(site);
  const fired = new Map<string, number>();
  const look = async () => {
    const now = await firing();
    for (const alert of alerts) if (now.has(alert) && !fired.has(alert)) fired.set(alert, since(began));
    return fired.size === alerts.length;
  };
  await until(look, fires_ms, "").catch(() => {});
  const { begun = [], over = [] } = underway.notices ?? {};
  const notices = await arrived(site, before, begun);
  const signs = await underway.signs();
  const mended = performance.now();
  await underway.mend();
  const ended = new Map<string, number>();
  const lookAgain = async () => {
    const now = await firing();
    for (const alert of alerts) if (!now.has(alert) && !ended.has(alert)) ended.set(alert, since(mended));
    return ended.size === alerts.length;
  };
  await until(lookAgain, ends_ms, "").catch(() => tellWhy(site, alerts));
  notices.push(...(await arrived(site, before, over)), ...repeated(site, before, [...begun, ...over]));
  const outcomes = alerts.map((alert) => ({
    alert,
    fired_s: fired.get(alert) ?? null,
    ended_s: ended.get(alert) ?? null,
    sign: signs[alert]!,
  }));
  return { alerts: outcomes, notices };
}

/** Logs the series because of which the alerts keep firing. */
async function tellWhy(site: Site, alerts: readonly string[]): Promise<void> {
  for (const alert of alerts) {
    const series = await site.prometheus.query(`ALERTS{alertname="${alert}"}`);
    const up = await site.prometheus.query('{__name__=~"up|usage_recovered_total|usage_settled_late_total"}');
    console.log(`${alert} goes on:`, JSON.stringify({ series, up }));
  }
}

const since = (began: number) => (performance.now() - began) / 1000;

async function alertsWithout(outcomes: Outcome[]): Promise<string[]> {
  const { groups } = parse(await Bun.file(`${rulesFolder}/rules.yaml`).text()) as {
    groups: { rules: { alert: string }[] }[];
  };
  const tried = new Set(outcomes.map(({ alert }) => alert));
  return groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).filter((alert) => !tried.has(alert));
}

await main();
