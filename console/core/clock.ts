/**
 * The current time, against which the pages show times such as `2 min ago`. It advances every ten seconds, and only
 * while the tab is visible.
 */
import { signal } from "@preact/signals";

const every_ms = 10_000;
export const now = signal(new Date());

setInterval(() => {
  if (!document.hidden) now.value = new Date();
}, every_ms);
