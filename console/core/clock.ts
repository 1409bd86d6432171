/** The instant that distances are counted from. It moves once in ten seconds, and only where the tab is seen. */
import { signal } from "@preact/signals";

const every_ms = 10_000;
export const now = signal(new Date());

setInterval(() => {
  if (!document.hidden) now.value = new Date();
}, every_ms);
