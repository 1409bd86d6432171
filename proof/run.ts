// `npm run proof`: the crash test of metering. proof/README.md describes it and its output.

import { parseArgs } from "node:util";
import { startEngine } from "./engine.ts";
import { newFindings, readKnown } from "./known.ts";
import { printed, summed } from "./report.ts";
import { type Outcome, runSession, type Stage } from "./session.ts";
import type { Link, Target } from "./target.ts";
import { targets } from "./targets.ts";
import { wireTo } from "./wire.ts";

const usage = `Usage: npm run proof -- [options]

Options:
  --target NAME   the gateway under test: ${targets.map(({ name }) => name).join(", ")} (default: sluice)
  --url URL       the base URL of one that runs already; see README.md, A gateway that runs already
  --engine-port N where the engine listens (default: any free port)
  --faults N      how many faults (default: 200)
  --seed S        draws the same faults and requests again (default: of the time)
  --only WORD     only faults whose name has the word
  --clients N     how many clients at once (default: 8)
  --tokens N      the longest answer, in tokens (default: 400)
  --until-found   ends after the first session with a finding that is not known
  --json FILE     also writes everything there`;

/**
 * The number of faults per session. Each session ends with a quiet time, so many short sessions take long; but a
 * finding in a long session is harder to investigate.
 */
const faults_per_session = 20;

interface Options {
  target: Target;
  url: string | null;
  engine_port: number;
  faults: number;
  seed: number;
  only: string;
  clients: number;
  tokens_max: number;
  until_found: boolean;
  json: string | null;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  const { target } = options;
  console.log(`${target.name} ${await target.version()}: ${target.settings}`);
  console.log(`${options.faults} faults, seed ${options.seed}`);
  const outcome = await tried(options);
  const known = readKnown(target.name);
  console.log(printed(outcome, known));
  process.exitCode = newFindings(outcome.findings, known).length === 0 ? 0 : 1;
}

async function tried(options: Options): Promise<Outcome> {
  const { target, url } = options;
  const engine = await startEngine();
  const links: Link[] = [];
  const wired = async (name: string, node: string | null, port: number, at = 0) => {
    const wire = await wireTo({ port, at });
    links.push({ name, node, wire });
    return wire.port;
  };
  const engine_port = await wired("the gateway and its engine", null, engine.port, options.engine_port);
  const site = url === null ? await target.start(`http://127.0.0.1:${engine_port}`) : await target.attach!(url);
  const doors: Stage["doors"] = [];
  for (const { name, url } of site.nodes) {
    const door = new URL(url);
    door.port = `${await wired(`clients and ${name}`, name, Number(door.port))}`;
    doors.push({ node: name, url: door.href.replace(/\/$/, "") });
  }
  try {
    return await sessions({ target, site, engine, links, doors }, options);
  } catch (failure) {
    throw new Error(`${failure instanceof Error ? failure.stack : failure}\n\n${site.lastWords()}`);
  } finally {
    await site.stop();
    await Promise.all(links.map(({ wire }) => wire.stop()));
    await engine.stop();
  }
}

async function sessions(stage: Stage, options: Options): Promise<Outcome> {
  const outcomes: Outcome[] = [];
  for (let done = 0; done < options.faults; done += faults_per_session) {
    const faults = Math.min(faults_per_session, options.faults - done);
    const { only, clients, tokens_max } = options;
    const outcome = await runSession(stage, { seed: options.seed + done, faults, only, clients, tokens_max });
    outcomes.push(outcome);
    const { requests, answered, findings } = outcome;
    console.log(`${done + faults} faults: ${requests} requests, ${answered} answered, ${findings.length} findings`);
    for (const { verdict, says } of findings) console.log(`  ${verdict}: ${says}`);
    // The results are written after each session, so that an interrupted run leaves its findings.
    if (options.json !== null) await Bun.write(options.json, jsonOf(options, summed(outcomes), done + faults));
    if (options.until_found && newFindings(findings, readKnown(options.target.name)).length > 0) break;
  }
  return summed(outcomes);
}

function readOptions(words: string[]): Options {
  try {
    const { values } = parseArgs({
      args: words,
      options: {
        target: { type: "string", default: "sluice" },
        url: { type: "string" },
        "engine-port": { type: "string" },
        faults: { type: "string", default: "200" },
        seed: { type: "string", default: `${Date.now() % 1_000_000_000}` },
        only: { type: "string", default: "" },
        clients: { type: "string", default: "8" },
        tokens: { type: "string", default: "400" },
        "until-found": { type: "boolean", default: false },
        json: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const target = targets.find(({ name }) => name === values.target);
    if (!target) throw new Error(`There is no target "${values.target}".`);
    if (values.url !== undefined && target.attach === undefined)
      throw new Error(`${target.name} must be started by the test: it has no --url.`);
    return {
      target,
      url: values.url ?? null,
      engine_port: values["engine-port"] === undefined ? 0 : numberOf("engine-port", values["engine-port"], 65_535),
      faults: numberOf("faults", values.faults, 1_000_000),
      seed: numberOf("seed", values.seed, 2 ** 32 - 1),
      only: values.only,
      clients: numberOf("clients", values.clients, 1_000),
      tokens_max: numberOf("tokens", values.tokens, 100_000),
      until_found: values["until-found"],
      json: values.json ?? null,
    };
  } catch (failure) {
    console.error(`${failure instanceof Error ? failure.message : failure}\n\n${usage}`);
    process.exit(2);
  }
}

function numberOf(name: string, text: string, most: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= most) return number;
  throw new Error(`--${name} is a whole number from 1 to ${most}, not "${text}".`);
}

function jsonOf({ target, seed }: Options, outcome: Outcome, faults: number): string {
  const injuries = Object.fromEntries(outcome.injuries);
  return `${JSON.stringify({ target: target.name, seed, faults, ...outcome, injuries }, null, 2)}\n`;
}

await main();
