/**
 * Claude Code in a terminal, by its own sign-in: it comes in, works, says how much is used at 75 and at 95 percent, shows
 * the same as the service to the second, is limited in one sentence, and signs out. It needs tmux.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { approve } from "../../harness/laptop.ts";
import type { PeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { type Desk, desk, startedNode } from "./desk.ts";
import { type TmuxTerminal, tmux, tmuxTerminal } from "./tmux.ts";

setDefaultTimeout(240_000);

let node: PeopleNode;
let place: Desk;
beforeAll(async () => {
  node = await startedNode();
  node.provider.claims.set("ann", { email: "ann@x.test", email_verified: true, groups: ["research"] });
  place = desk();
  const folder = join(place.home.folder, ".claude");
  mkdirSync(folder);
  const settings = { forceLoginMethod: "gateway", forceLoginGatewayUrl: node.serviceUrl };
  writeFileSync(join(folder, "settings.json"), JSON.stringify(settings));
});
afterAll(async () => {
  place?.[Symbol.dispose]();
  await node?.[Symbol.asyncDispose]();
});

interface SignIn {
  id: string;
  revoked_at: string | null;
}
const signIns = () => node.sluice.json<SignIn[]>("key", "list", "--kind", "sign-in");
const session = async () => {
  const { session } = await node.sluice.json<{ session: Session }>("usage", "show", node.sluice.organization);
  return session;
};
interface Session {
  used: number;
  held: number;
  limit: number;
  reset_at: string;
}
/** So much of the organization's session is used from now on. */
async function use(share: number): Promise<void> {
  await until(async () => (await session()).held === 0, 10_000, "the last request to be settled");
  const { used, limit } = await session();
  const units = `+${Math.ceil(limit * share) - used}`;
  const words = ["--window", "session", "--units", units, "--reason", "test"];
  expect((await node.sluice.cli("usage", "adjust", node.sluice.organization, ...words)).code).toBe(0);
}
async function ask(terminal: TmuxTerminal, text: string): Promise<void> {
  terminal.type(text);
  await terminal.sees(new RegExp(`❯ ${text}`));
  terminal.press("Enter");
}
/** As Claude Code shows an instant: `5:03am`, in a machine of UTC. */
function clockOf(instant: string): string {
  const reset = new Date(Math.ceil(Date.parse(instant) / 1000) * 1000);
  const [hour, minute] = [reset.getUTCHours(), String(reset.getUTCMinutes()).padStart(2, "0")];
  return `${hour % 12 || 12}${minute === "00" ? "" : `:${minute}`}${hour < 12 ? "am" : "pm"}`;
}

test.skipIf(!tmux)("Claude Code signs in, works, is warned, shows its usage, is limited, and signs out", async () => {
  const began_ms = performance.now();
  using terminal = tmuxTerminal(place.home.folder, "claude", { ...place.home.env, TZ: "UTC" });
  await terminal.sees(/Choose the text style/);
  terminal.press("Enter");
  await terminal.sees(/Enter to connect/);
  terminal.press("Enter");
  await terminal.choose(/Yes, trust this gateway/);
  const [code] = /[B-Z]{4}-[B-Z]{4}/.exec(await terminal.sees(/Code: +[B-Z]{4}-[B-Z]{4}/))!;
  await approve(node, code);
  await terminal.sees(/Signed in to Cloud gateway as ann@x\.test/);
  await terminal.choose(/Yes, continue/);
  await terminal.sees(/Connected to Cloud gateway/);
  terminal.press("Enter");
  await terminal.sees(/Security notes/);
  terminal.press("Enter");
  await terminal.choose(/Yes, I trust this folder/);
  await terminal.sees(/· Cloud gateway.*\n❯/s);
  await ask(terminal, "hello");
  await terminal.sees(/● This is the Sluice simulator/);
  console.log(`Claude Code in a terminal: first answer after ${((performance.now() - began_ms) / 1000).toFixed(1)} s`);
  expect(terminal.shown()).not.toMatch(/You've used/);

  for (const [percent, text] of [
    [76, "again"],
    [96, "and again"],
  ] as const) {
    await use(percent / 100);
    await ask(terminal, text);
    const shown = await terminal.sees(new RegExp(`You've used ${percent}% of your usage credits`));
    expect(shown).toContain(`resets ${clockOf((await session()).reset_at)} (UTC)`);
  }
  // Amounts show only where the service says the same second by headers and by /api/oauth/usage.
  await ask(terminal, "/usage");
  expect(await terminal.sees(/96% used.*spent/s)).toMatch(/€4,800\.\d\d \/ €5,000\.00 spent · Resets .*\(UTC\)/);
  terminal.press("Escape");

  await use(1);
  await ask(terminal, "once more");
  const refused = await terminal.sees(/is used up/);
  expect(refused.replaceAll(/\s+/g, " ")).toMatch(
    /● The organization's five-hour session limit of 10,000,000,000 units is used up; wait until [^.]* resets at [^ ]+Z, or ask your administrator/,
  );
  await ask(terminal, "/logout");
  terminal.press("Enter");
  await until(async () => (await signIns()).every((one) => one.revoked_at !== null), 15_000, "the sign-in to end");
  await terminal.ends();
  // It sends what it is signed in to nowhere else.
  expect(place.caught).toEqual([]);
});
