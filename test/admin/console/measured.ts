// Measures how a page fits its window: its height, by how much it is wider than the window, and which texts are cut
// off.
import type { Tab } from "./chromium.ts";

export const phone = { width: 390, height: 844 };

/** The height of four screens of a phone. */
export const longest_px = 4 * phone.height;

export interface Measured {
  height_px: number;
  overflow_px: number;
  /**
   * The texts that do not fit, each with the kind of problem: it is partly hidden, it must be scrolled to, or it
   * overlaps its neighbour.
   */
  cut: string[];
}

/**
 * JavaScript that measures the page. It ignores texts in areas that are meant to be scrolled: the navigation, and the
 * tabs of a page.
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
