// Two ways to use the pages: with a mouse, whose clicks are counted, and with the keyboard alone.
import type { Locator } from "playwright-core";
import type { Tab } from "./chromium.ts";

/** A field that was filled in, by typing or by choosing from a list. */
interface Filled {
  label: string;
  text: string;
}

export abstract class Hands {
  /** The number of clicks on buttons, links and suggestions. */
  presses = 0;
  readonly filled: Filled[] = [];
  /** The problems that were found on the pages so far. */
  readonly problems: string[] = [];
  /** The number of presses of Tab. */
  steps = 0;
  /** The time in milliseconds that axe took to check the pages. */
  looked_ms = 0;

  constructor(
    readonly tab: Tab,
    /** Whether axe checks the page after each click. */
    readonly looksAtPages = false,
  ) {}

  /** Clicks the target, which must be the only visible element with its name. */
  async press(target: Locator): Promise<void> {
    await this.#there(target);
    this.presses += 1;
    await this.act(target);
    await this.tab.settled();
    if (this.looksAtPages) await this.#look();
  }

  async fill(target: Locator, text: string): Promise<void> {
    await this.#there(target);
    this.filled.push({ label: await labelOf(target), text });
    await this.write(target, text);
  }

  async choose(target: Locator, option: string): Promise<void> {
    await this.#there(target);
    this.filled.push({ label: await labelOf(target), text: option });
    await this.pick(target, option);
    await this.tab.settled();
  }

  protected abstract act(target: Locator): Promise<void>;
  protected abstract write(target: Locator, text: string): Promise<void>;
  protected abstract pick(target: Locator, option: string): Promise<void>;

  async #look(): Promise<void> {
    const began_ms = performance.now();
    const path = new URL(this.tab.page.url()).pathname;
    this.problems.push(...(await this.tab.axeProblems()).map((one) => `${path}: ${one}`));
    this.looked_ms += performance.now() - began_ms;
  }

  async #there(target: Locator): Promise<void> {
    await target.waitFor();
    if ((await target.count()) !== 1) throw new Error(`There is more than one ${target}.`);
  }
}

const labelOf = (target: Locator): Promise<string> =>
  target.evaluate((element) => element.labels?.[0]?.textContent ?? element.ariaLabel ?? "");

export class Mouse extends Hands {
  protected act(target: Locator): Promise<void> {
    return target.click();
  }
  protected write(target: Locator, text: string): Promise<void> {
    return target.fill(text);
  }
  protected async pick(target: Locator, option: string): Promise<void> {
    await target.selectOption({ label: option });
  }
}

const steps_max = 400;

/**
 * Uses a page with Tab, arrow keys, letters and Enter. Each element that gets the focus must be visible, and within the
 * dialog if one is open.
 */
export class Keyboard extends Hands {
  protected async act(target: Locator): Promise<void> {
    const { keyboard } = this.tab.page;
    if ((await target.getAttribute("role")) === "option") {
      await this.#choose(target);
      return;
    }
    await this.#reach(target);
    const hadDialog = await this.#hasDialog();
    if (!hadDialog) this.#opener = await target.elementHandle();
    await keyboard.press("Enter");
    if (hadDialog) await this.#returns();
  }

  protected async write(target: Locator, text: string): Promise<void> {
    await this.#reach(target);
    const { keyboard } = this.tab.page;
    const isDay = (await target.getAttribute("type")) === "date";
    // A date field expects its parts in the order of the browser's language, which is US English.
    if (isDay) await keyboard.type(text.replace(/^(\d+)-(\d+)-(\d+)$/, "$2$3$1"));
    else {
      await keyboard.press("Control+a");
      await keyboard.type(text);
    }
  }

  protected async pick(target: Locator, option: string): Promise<void> {
    await this.#reach(target);
    await this.tab.page.keyboard.type(option);
    const chosen = await target.evaluate((select) => select.selectedOptions[0]?.label);
    if (chosen !== option) throw new Error(`The letters of ${option} choose ${chosen}.`);
  }

  #opener: Awaited<ReturnType<Locator["elementHandle"]>> | null = null;

  #hasDialog = async () => (await this.tab.page.locator("dialog[open]").count()) > 0;

  /** Checks that the focus returns to the element that opened a dialog, if the dialog has closed. */
  async #returns(): Promise<void> {
    const opener = this.#opener!;
    const { page } = this.tab;
    // If the action shows a result, such as a secret, the dialog stays open.
    await page.locator("body:not(:has(dialog[open])), dialog .told, dialog [role=alert]").first().waitFor();
    if (await this.#hasDialog()) return;
    const isLost = await opener.evaluate(
      (element) => element.isConnected && element !== element.ownerDocument.activeElement,
    );
    if (isLost) this.problems.push(`the focus did not come back to ${await opener.textContent()}`);
  }

  /** Chooses a suggestion with the arrow keys, while the text field keeps the focus. */
  async #choose(option: Locator): Promise<void> {
    const { keyboard } = this.tab.page;
    for (let step = 0; step < steps_max; step += 1) {
      if ((await option.getAttribute("aria-selected")) === "true") return keyboard.press("Enter");
      await keyboard.press("ArrowDown");
    }
    throw new Error(`The arrows do not come to ${option}.`);
  }

  async #reach(target: Locator): Promise<void> {
    const wanted = (await target.elementHandle())!;
    for (let step = 0; step < steps_max; step += 1) {
      if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return;
      await this.tab.page.keyboard.press("Tab");
      this.steps += 1;
      const problem = await this.#stopProblem();
      if (problem !== null) this.problems.push(`${new URL(this.tab.page.url()).pathname}: ${problem}`);
    }
    throw new Error(`The keyboard does not come to ${target}.`);
  }

  /** The problem of the focused element; null if its focus is visible and it is within the open dialog. */
  #stopProblem(): Promise<string | null> {
    return this.tab.page.locator("html").evaluate(({ ownerDocument }) => {
      const element = ownerDocument.activeElement;
      if (!element || element === ownerDocument.body) return null;
      const { outlineStyle, outlineWidth } = ownerDocument.defaultView.getComputedStyle(element);
      const named = element.outerHTML.slice(0, 120);
      if (outlineStyle === "none" || outlineWidth === "0px") return `no sign of the focus on ${named}`;
      const { width, height } = element.getBoundingClientRect();
      if (width < 1 || height < 1) return `the focus is on what nobody sees: ${named}`;
      const dialog = ownerDocument.querySelector("dialog[open]");
      return dialog && !dialog.contains(element) ? `the focus left the dialog: ${named}` : null;
    });
  }
}
