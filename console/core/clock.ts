/**
 * The current time, from which distances are counted. It advances every ten seconds, and only while the tab is visible.
 */
import { signal } from "@preact/signals";

const every_ms = 10_000;
export const now = signal(new Date());

setInterval(() => {
  if (!document.hidden) now.value = new Date();
}, every_ms);
