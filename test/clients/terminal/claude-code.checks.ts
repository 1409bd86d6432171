/**
 * Claude Code in a terminal, unchanged, with a person's sign-in: it signs in, works, shows the usage, reaches a limit,
 * shows the reason, and is signed out. Run by `npm run test:clients -- terminal`; the screens are saved in
 * `.cache/clients/terminal/screens`. Each check continues where the previous check ended.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decimalOf, type Money } from "../../../src/core/inference/money.ts";
import { approve } from "../../harness/laptop.ts";
import { nanosOf } from "../../harness/money.ts";
import type { PeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { type Desk, desk, startedNode } from "../sign-in/desk.ts";
import { openTerminal, type Terminal } from "./terminal.ts";

setDefaultTimeout(400_000);

/**
 * The input tokens of a typical request of an agent. Such a request costs a little over 30 cents, and needs 53 cents
 * for its hold, so that eight fit into `budget_nanos`.
 */
const inputTokens = 20_000;
const budget_nanos = 2_700_000_000;
const euros_nano = 1e-9;
/** A model with the prices of a large one. */
const models = `
models:
  - id: acme/large
    created: 1790000000
    context_window: 200000
    max_output_tokens: 32000
    capabilities: [tools, parallel_tools, vision, reasoning]
    prices: { input: 15, cached_input: 1.5, cache_write: 18.75, output: 75 }
    routes: [{ upstream: simulator, model: large }]
`;

const engine = startScriptedEngine((_asked, turn) => ({
  prompt_tokens: inputTokens,
  completion_tokens: JSON.stringify(turn).length,
}));
const screens = join(process.cwd(), ".cache/clients/terminal/screens");
let node: PeopleNode;
let place: Desk;
let work: string;
let terminal: Terminal;
let person = "";

beforeAll(async () => {
  rmSync(screens, { recursive: true, force: true });
  node = await startedNode({ SLUICE_UPSTREAM_URL: engine.url }, models);
  node.provider.claims.set("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
  place = desk();
  work = join(place.home.folder, "work");
  mkdirSync(work);
});
afterAll(async () => {
  await terminal?.keep("99-last").catch(() => undefined);
  await terminal?.[Symbol.asyncDispose]();
  place?.[Symbol.dispose]();
  await node?.[Symbol.asyncDispose]();
  engine.stop();
});

const open = () => openTerminal([join(place.home.folder, "bin/claude")], { cwd: work, env: place.home.env, screens });
const sluice = <Answer>(...words: string[]) => node.sluice.json<Answer>(...words);
const done: Turn = { text: "It is all done." };
const shell = (command: string): Turn => ({
  text: "I begin.",
  calls: [{ name: "Bash", arguments: { command, description: "Work" } }],
});
/** The charge of each of Ann's requests, from its receipt. */
const charged = async () => {
  const rows = await sluice<{ outcome: string; cost: { charged: Money } }[]>("request", "list", "--person", person);
  return rows.filter(({ outcome }) => outcome === "completed").map(({ cost }) => nanosOf(cost.charged));
};
const sum = (numbers: number[]) => numbers.reduce((all, one) => all + one, 0);
const limit = (nanos: number | "none") =>
  sluice(
    "limit",
    "set",
    "person",
    person,
    "--org",
    node.sluice.organization,
    `session=${nanos === "none" ? nanos : decimalOf(nanos, 9)}`,
  );
const money = (nanos: number) => `€${(nanos * euros_nano).toFixed(2)}`;
const credentials = () => join(place.home.folder, ".claude/.credentials.json");
const token = () => JSON.parse(readFileSync(credentials(), "utf8")).enterpriseGateway.jwt as string;
const asAnn = async (path: string) =>
  (await fetch(node.serviceUrl + path, { headers: { authorization: `Bearer ${token()}` } })).json();

test("signs in by itself, from nothing to the first answer", async () => {
  mkdirSync(join(place.home.folder, ".claude"));
  // The settings from docs/clients.md. In addition, Claude Code asks the user before each command; otherwise it would
  // have a model judge the command.
  const settings = { forceLoginMethod: "gateway", forceLoginGatewayUrl: node.serviceUrl };
  writeFileSync(
    join(place.home.folder, ".claude/settings.json"),
    JSON.stringify({ ...settings, permissions: { defaultMode: "default" } }),
  );
  engine.play([done]);
  const began_ms = performance.now();
  terminal = await open();
  await terminal.choose("Auto (match terminal)");
  await terminal.shows("Enter to connect");
  await terminal.keep("01-gateway");
  await terminal.press("Enter");
  await terminal.shows("Trust gateway");
  await terminal.choose("Yes, trust this gateway");
  const [, code] = /Code: +([A-Z]{4}-[A-Z]{4})/.exec(await terminal.shows(/Code: +[A-Z]{4}-/))!;
  await terminal.keep("02-code");
  await approve(node, code!);
  await terminal.shows("Signed in to Cloud gateway as ann@x.test");
  await terminal.keep("03-signed-in");
  await terminal.choose("Yes, continue");
  await terminal.shows("Connected to Cloud gateway");
  await terminal.press("Enter");
  await terminal.shows("Security notes");
  await terminal.press("Enter");
  await terminal.choose("Yes, I trust this folder");
  await terminal.shows("· Cloud gateway");
  await terminal.say("Say hello.");
  await terminal.shows(`● ${done.text}`);
  await terminal.keep("04-first-answer");
  console.log(`Claude Code in a terminal: ${((performance.now() - began_ms) / 1000).toFixed(1)} s to the first answer`);
  const people = await sluice<{ id: string; email: string }[]>("person", "list");
  expect(people.map(({ email }) => email)).toEqual(["ann@x.test"]);
  person = people[0]!.id;
  expect(await charged()).toHaveLength(1);
});

test("works: runs a command that its person allows, and answers", async () => {
  await limit(budget_nanos);
  engine.play([shell("echo tulip >flower.txt"), { text: "It is written." }]);
  await terminal.say("Write the flower down.");
  await terminal.shows("Do you want to proceed?");
  await terminal.keep("05-asks");
  await terminal.choose("Yes");
  await until(() => existsSync(join(work, "flower.txt")), 30_000, "the command to run");
  await until(() => engine.asked.length === 2, 30_000, "its result to be sent");
  await terminal.shows("● It is written.");
  await terminal.keep("06-worked");
  expect(readFileSync(join(work, "flower.txt"), "utf8")).toBe("tulip\n");
  expect(JSON.stringify(engine.asked[1]!.messages)).toContain("tool_call");
});

test("shows in /usage what the ledger has: the sum of the receipts, and the reset to the second", async () => {
  await until(async () => (await charged()).length === 3, 10_000, "three receipts");
  const used = sum(await charged());
  await terminal.say("/usage");
  const screen = await terminal.shows(/spent · Resets/);
  await terminal.keep("07-usage");
  // Leaves the page before the checks below; otherwise, if one failed, the page would stay open for the later checks.
  await terminal.leave("spent · Resets");
  expect(screen).toContain(`${money(used)} / ${money(budget_nanos)} spent`);
  expect(screen).toContain(`${Math.floor((used / budget_nanos) * 100)}% used`);
  const { limits } = (await asAnn("/api/oauth/usage")) as { limits: { is_active: boolean; resets_at: string }[] };
  const { person: own } = (await asAnn("/v1/service/usage")) as { person: { session: { reset_at: string } } };
  const second = (instant: string) => Math.ceil(Date.parse(instant) / 1000);
  const resets = limits.find(({ is_active }) => is_active)!.resets_at;
  expect(second(resets)).toBe(second(own.session.reset_at));
  const clock = new Date(resets).toLocaleTimeString("en-US", { hour: "numeric", minute: "2-digit", timeZone: "UTC" });
  expect(screen.toLowerCase().replaceAll(" ", "")).toContain(clock.toLowerCase().replaceAll(" ", ""));
});

test("is warned when little is left, and then told why it is limited, in one request", async () => {
  // The headers of each response report the usage before that response.
  engine.play(() => ({ text: `Step ${engine.asked.length} is done.` }));
  const warning = /You've used (7[5-9]|8\d)% of your/;
  for (let step = 1; step <= 6 && !warning.test(await terminal.screen()); step++) {
    await terminal.say(`Step ${step}, please.`);
    await terminal.shows(`● Step ${step} is done.`);
    await until(async () => (await charged()).length === 3 + step, 10_000, "the receipt");
  }
  await terminal.shows(warning);
  await terminal.keep("08-warned");
  const before = (await charged()).length;
  await terminal.say("And on.");
  await terminal.shows(/its\s+€2\.70\s+for\s+this\s+session\s+of\s+five\s+hours/);
  await terminal.shows(/it starts anew on \d+ \w+\s+\d\d:\d\d\s+\(UTC\)/);
  await terminal.keep("09-limited");
  const rows = await sluice<{ outcome: string; error_code: string | null }[]>("request", "list", "--person", person);
  expect(rows.filter(({ outcome }) => outcome === "refused")).toHaveLength(1);
  expect(await charged()).toHaveLength(before);
});

test("goes on as soon as the limit is raised", async () => {
  engine.play([{ text: "I am back." }]);
  await limit("none");
  await terminal.say("And now?");
  await terminal.shows("I am back.");
  await terminal.keep("10-raised");
});

test("is told that its person is suspended, and goes on when she is resumed", async () => {
  engine.play([{ text: "Here again." }]);
  await sluice("person", "suspend", person);
  await terminal.say("Are you there?");
  await terminal.shows(/suspended/i);
  await terminal.keep("11-suspended");
  await sluice("person", "resume", person);
  await terminal.say("Once more.");
  await terminal.shows("Here again.");
});

test("is asked to sign in again when its sign-in was ended at the service", async () => {
  const keys = await sluice<{ id: string }[]>("key", "list", "--kind", "sign-in");
  engine.play([done]);
  for (const { id } of keys) await sluice("key", "revoke", id);
  await terminal.say("Still there?");
  await terminal.shows(/\/login/);
  await terminal.keep("12-signed-out");
  expect(engine.asked).toEqual([]);
});

test("reaches no other host on the way", () => {
  expect(place.caught).toEqual([]);
});
