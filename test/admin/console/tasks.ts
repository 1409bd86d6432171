// Ten typical tasks of console users, done as a new user would do them: starting from the first page, and by visible
// elements only.
import type { Locator } from "playwright-core";
import { busyness } from "../../harness/busyness.ts";
import { type launchBrowser, openTab, type Tab } from "./chromium.ts";
import { type Company, engineText } from "./company.ts";
import { type Hands, Keyboard, Mouse } from "./hands.ts";

type Browser = Awaited<ReturnType<typeof launchBrowser>>;

/** The maximum number of clicks per task. Filling in fields does not count. */
export const clicks_max = 4;

export interface Task {
  name: string;
  /** Does the task. Resolves when the page shows that it is done. */
  run(hands: Hands, company: Company): Promise<void>;
  /** Reverts the effects of the task that would prevent doing it a second time. */
  takeBack?(company: Company): Promise<unknown>;
}

const rail = ({ tab }: Hands, name: string) =>
  tab.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true });
const main = ({ tab }: Hands) => tab.page.locator("main");
const link = (hands: Hands, name: string, within = main(hands)) =>
  within.getByRole("link", { name, exact: true }).first();
const button = (hands: Hands, name: string, within = main(hands)) =>
  within.getByRole("button", { name, exact: true }).first();
const dialog = ({ tab }: Hands) => tab.page.locator("dialog");
const field = (hands: Hands, label: string, within: Locator = dialog(hands)) =>
  within.getByLabel(label, { exact: true });
const rowOf = (hands: Hands, text: string) => main(hands).locator("tbody tr", { hasText: text }).first();
const submit = (hands: Hands) => dialog(hands).locator("button[type=submit]");
const dollars = (amount: number) => amount.toLocaleString("en", { style: "currency", currency: "USD" });
const shown = (where: Locator) => where.waitFor({ timeout: 10_000 * busyness() });

/** The date of the next Friday after today. */
function friday(): string {
  const now = new Date();
  return new Date(now.getTime() + (((5 - now.getUTCDay() + 6) % 7) + 1) * 86_400_000).toISOString().slice(0, 10);
}

/** Opens the form of an action, fills it in, and submits it. */
async function act(hands: Hands, opener: Locator, fields: Record<string, string>): Promise<void> {
  await hands.press(opener);
  for (const [label, value] of Object.entries(fields)) {
    const one = field(hands, label);
    if (await one.evaluate((element) => element.tagName === "SELECT")) await hands.choose(one, value);
    else await hands.fill(one, value);
  }
  await hands.press(submit(hands));
}

const closed = (hands: Hands) => dialog(hands).waitFor({ state: "detached", timeout: 10_000 * busyness() });

export const tasks: readonly Task[] = [
  {
    name: "a team with $50 a month",
    async run(hands) {
      const name = `design ${Bun.randomUUIDv7().slice(-6)}`;
      await hands.press(rail(hands, "Teams"));
      await act(hands, button(hands, "Create team"), { Organization: "acme", Name: name, "Money in a month": "50" });
      await closed(hands);
      await shown(rowOf(hands, name).getByText("0 %"));
    },
  },
  {
    name: "a person's limit",
    async run(hands) {
      await hands.press(rail(hands, "People"));
      await hands.press(link(hands, "Kim Example"));
      const amount = 70 + Math.floor(Math.random() * 1e6) / 100;
      await act(hands, button(hands, "Set limits"), { "Money in a month": amount.toFixed(2) });
      await closed(hands);
      await shown(rowOf(hands, dollars(amount)));
    },
  },
  {
    name: "more for a person until Friday",
    async run(hands) {
      await hands.press(rail(hands, "People"));
      await hands.press(link(hands, "Leo Example"));
      await act(hands, button(hands, "Temporary increase"), { "Money in a month": "200", "Ends on": friday() });
      await closed(hands);
      await shown(rowOf(hands, "increased until"));
    },
  },
  {
    name: "who spent most last week, and on what",
    async run(hands) {
      await hands.press(rail(hands, "Usage"));
      await hands.press(button(hands, "Last week"));
      const top = main(hands).locator("section", { has: hands.tab.page.getByRole("heading", { name: "Top people" }) });
      await hands.press(top.getByRole("link").first());
      await shown(main(hands).getByRole("heading", { name: "By model", exact: true }));
      await shown(rowOf(hands, "qwen/qwen3-coder"));
    },
  },
  {
    name: "why one person's request failed",
    async run(hands, { employees }) {
      const { name } = employees[0]!;
      await hands.press(rail(hands, "Requests"));
      await hands.fill(field(hands, "Person", main(hands)), name);
      await hands.press(hands.tab.page.getByRole("option", { name: new RegExp(`^${name}`) }));
      await hands.choose(field(hands, "Outcome", main(hands)), "failed");
      await shown(rowOf(hands, "failed"));
      await hands.press(rowOf(hands, "failed").getByRole("link").first());
      await shown(main(hands).getByText(engineText));
    },
  },
  {
    name: "rotate a key",
    async run(hands) {
      await hands.press(rail(hands, "Keys"));
      await act(hands, button(hands, "Rotate", rowOf(hands, "nightly build")), {});
      await shown(dialog(hands).getByText("shown this once"));
      await hands.press(dialog(hands).getByRole("button", { name: "Done" }));
      await closed(hands);
    },
  },
  {
    name: "drain an engine",
    async run(hands) {
      await hands.press(rail(hands, "Engines"));
      await act(hands, button(hands, "Drain", rowOf(hands, "simulator")), {});
      await closed(hands);
      await shown(button(hands, "Resume"));
    },
    takeBack: ({ command }) => command("upstream", "resume", "simulator"),
  },
  {
    name: "who changed this limit",
    async run(hands) {
      await hands.press(rail(hands, "Teams"));
      await hands.press(link(hands, "platform"));
      await hands.press(link(hands, "Audit"));
      await shown(rowOf(hands, "team.limits").getByText(/^cli:/));
    },
  },
  {
    name: "connect Claude Code",
    async run(hands) {
      await hands.press(rail(hands, "Connect"));
      const block = main(hands).locator("section", {
        has: hands.tab.page.getByRole("heading", { name: "Claude Code", exact: true }),
      });
      await shown(block.getByText("ANTHROPIC_BASE_URL"));
      await hands.press(button(hands, "Copy", block));
    },
  },
  {
    name: "give a colleague a role",
    async run(hands) {
      await hands.press(rail(hands, "People"));
      await hands.press(link(hands, "Vera Example"));
      await act(hands, button(hands, "Give membership"), { Organization: "acme", Role: "organization-admin" });
      await closed(hands);
      await shown(rowOf(hands, "organization-admin"));
    },
  },
];

interface Way {
  by: "mouse" | "keyboard";
  /** Whether axe checks each page that is opened. */
  looksAtPages?: boolean;
}

interface Performing extends Way {
  company: Company;
  browser: Browser;
}

export interface Performed {
  name: string;
  clicks: number;
  filled: readonly { label: string; text: string }[];
  /** The number of presses of Tab. */
  steps: number;
  ms: number;
  /** Problems of the pages and of the focus order, and errors in the browser's log. */
  problems: string[];
}

/** Does one task in a new tab, right after signing in. */
export async function performed(task: Task, { company, browser, ...way }: Performing): Promise<Performed> {
  const tab = await openTab(company.url, { theme: "light", width: 1440 }, browser);
  await tab.signIn(company.token);
  const done = await performedIn(tab, task, company, way);
  await tab.context.close();
  return done;
}

/** Does one task in a tab with a signed-in user, starting from the first page. */
export async function performedIn(tab: Tab, task: Task, company: Company, way: Way): Promise<Performed> {
  await tab.visit("/");
  const hands = way.by === "mouse" ? new Mouse(tab, way.looksAtPages) : new Keyboard(tab);
  const began_ms = performance.now();
  await task.run(hands, company);
  const ms = performance.now() - began_ms - hands.looked_ms;
  await task.takeBack?.(company);
  const problems = [...hands.problems, ...tab.found.splice(0)];
  const { presses: clicks, filled, steps } = hands;
  return { name: task.name, clicks, filled, steps, ms, problems };
}
