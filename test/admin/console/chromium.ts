// A real browser for the console's pages. It records errors in the browser's log, violations of the content security
// policy and requests to other hosts; and it runs axe, which finds obstacles for users of screen readers and keyboards.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { version } from "../../../node_modules/@sparticuz/chromium/package.json";
import { until } from "../../harness/until.ts";

/**
 * The reason why this machine has no browser; null if it has one. The npm package contains a program for Linux on x64
 * only.
 */
export const noBrowser =
  process.platform === "linux" && process.arch === "x64" ? null : "the browser of the tests runs on Linux x64 alone";

const axe = readFileSync(new URL("../../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/**
 * The npm package's default arguments are not used, because they switch off security rules of the web on which the
 * console relies.
 */
const launchArguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];

export async function launchBrowser() {
  return chromium.launch({ executablePath: await unpacked(), args: launchArguments, headless: true });
}

const cache = fileURLToPath(new URL("../../../node_modules/.cache/", import.meta.url));

/**
 * The path of the browser's executable. The npm package unpacks it into the folder for temporary files. Several
 * processes may need it concurrently, so each unpacks it into a folder of its own, and then renames the complete file.
 */
async function unpacked(): Promise<string> {
  const folder = `${cache}chromium-${version}`;
  const program = `${folder}/chromium`;
  if (existsSync(program)) return program;
  mkdirSync(cache, { recursive: true });
  const own = mkdtempSync(`${cache}chromium.`);
  const script = 'await (await import("@sparticuz/chromium")).default.executablePath()';
  const unpacking = Bun.spawn([process.execPath, "-e", script], { cwd: cache, env: { ...process.env, TMPDIR: own } });
  if ((await unpacking.exited) !== 0) throw new Error("the browser could not be unpacked");
  try {
    renameSync(own, folder);
  } catch {
    rmSync(own, { recursive: true, force: true });
  }
  return program;
}

/** The time zone of the browser. */
export const browserZone = "Europe/Berlin";

export interface Look {
  theme: "light" | "dark";
  width: number;
}

interface AxeResult {
  violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
}

/** A tab in which a user is signed in, and the problems that were found in it so far. */
export class Tab {
  readonly found: string[] = [];
  /** The issuer to which a sign-in redirects; null if there is none. */
  #issuer: string | null = null;

  constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    readonly url: string,
  ) {
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.found.push(`log: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.found.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.found.push(`a dialog of the browser: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on("request", (request) => {
      const isOwn = request.url().startsWith(`${url}/`) || /^(data|blob):/.test(request.url());
      const isSignIn = this.#issuer !== null && request.url().startsWith(`${this.#issuer}/`);
      if (!isOwn && !isSignIn) this.found.push(`a request to another host: ${request.url()}`);
    });
  }

  static async open(context: BrowserContext, url: string): Promise<Tab> {
    const page = await context.newPage();
    await page.addInitScript(`document.addEventListener("securitypolicyviolation", (event) =>
      console.error("policy: " + event.violatedDirective + " " + event.blockedURI + " " + event.sample))`);
    return new Tab(context, page, url);
  }

  async signIn(token: string): Promise<void> {
    await this.page.goto(`${this.url}/`);
    await this.page.fill("#token", token);
    await this.page.click("button[type=submit]");
    await this.page.waitForSelector(".rail");
  }

  /** Allows requests to this issuer from now on; without that, they are reported as requests to another host. */
  leaveFor({ issuer }: { issuer: string }): void {
    this.#issuer = issuer;
  }

  /** Signs in by the page's link to the issuer, which recognizes the person and redirects the browser back. */
  async signInBy({ issuer }: { issuer: string }): Promise<void> {
    this.leaveFor({ issuer });
    await this.page.goto(`${this.url}/`);
    await this.page.getByRole("link", { name: /^Sign in with / }).click();
    await this.page.waitForSelector(".rail");
    this.#issuer = null;
  }

  /** Opens a page, and waits until all its requests have their responses. */
  async visit(path: string): Promise<void> {
    await this.page.goto(this.url + path);
    await this.settled();
  }

  /** Lets the requests of the page to `url` wait until what this returns is called. */
  async delayed(url: string): Promise<() => void> {
    const { promise: later, resolve } = Promise.withResolvers<void>();
    await this.page.route(url, async (route) => {
      await later;
      await route.continue();
    });
    return resolve;
  }

  async settled(): Promise<void> {
    await this.page.waitForSelector("main h1");
    await until(async () => (await this.page.locator("[aria-busy=true], .waiting").count()) === 0);
  }

  /** Each axe rule that the page violates, with the first element that violates it. */
  async axeProblems(): Promise<string[]> {
    // Text that is fading in has less contrast, so this waits for the end of animations.
    await this.page.evaluate(`Promise.race([
      Promise.allSettled(document.getAnimations().map((one) => one.finished)),
      new Promise((over) => setTimeout(over, 1000)),
    ])`);
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate<AxeResult>('axe.run({ resultTypes: ["violations"] })');
    return violations.map(({ id, nodes }) => `axe ${id}: ${nodes[0]!.html.slice(0, 200)} ${nodes[0]!.failureSummary}`);
  }

  /** By how many pixels the page is wider than the window. */
  overflow_px(): Promise<number> {
    return this.page.evaluate("document.documentElement.scrollWidth - innerWidth");
  }
}

export async function openTab(
  url: string,
  { theme, width }: Look,
  browser: Awaited<ReturnType<typeof launchBrowser>>,
  more: BrowserContextOptions = {},
) {
  const context = await browser.newContext({
    locale: "en-GB",
    timezoneId: browserZone,
    colorScheme: theme,
    viewport: { width, height: 900 },
    ...more,
  });
  return Tab.open(context, url);
}
