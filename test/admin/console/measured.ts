// How a page fits its window: how long it is, how much wider than the window, and which texts do not fit their place.
import type { Tab } from "./chromium.ts";

export const phone = { width: 390, height: 844 };

/** The length of four screens of a phone. */
export const longest_px = 4 * phone.height;

export interface Measured {
  height_px: number;
  overflow_px: number;
  /**
   * The texts that do not fit, each with the way in which it does not: it is partly hidden, must be scrolled to, or
   * covers what is beside it.
   */
  cut: string[];
}

/**
 * JavaScript that measures the page. It does not report texts in strips that are made to be scrolled: navigation, and
 * the tabs of a page's parts.
 */
const measure = `(() => {
  const scrolled = ".rail, .tabs, .choices";
  const unseen = ".hidden, .skip, option, script, style, noscript, caption, dialog:not([open])";
  const ways = { visible: "over its edge", auto: "scrolled", scroll: "scrolled", hidden: "hidden", clip: "hidden" };
  const cut = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (data.trim() === "" || parentElement.closest(unseen) || parentElement.closest(scrolled)) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const text = range.getBoundingClientRect();
    if (text.width === 0) continue;
    for (let one = parentElement; one !== document.body; one = one.parentElement) {
      const style = getComputedStyle(one);
      if (style.display === "inline" || style.display === "contents") continue;
      const box = one.getBoundingClientRect();
      const wide = Math.max(text.right - box.right, box.left - text.left) > 1;
      const tall = style.overflowY !== "visible" && Math.max(text.bottom - box.bottom, box.top - text.top) > 2;
      if (!wide && !tall) continue;
      cut.add(data.trim().slice(0, 40) + " (" + ways[style.overflowX] + ", " + (one.className || one.localName) + ")");
      break;
    }
  }
  const { scrollHeight: height_px, scrollWidth, clientWidth } = document.documentElement;
  return { height_px, overflow_px: scrollWidth - clientWidth, cut: [...cut] };
})()`;

export const measured = ({ page }: Tab): Promise<Measured> => page.evaluate<Measured>(measure);
