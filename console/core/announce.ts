/** Tells screen readers of changes, through one region of the frame for all pages. */
import { signal } from "@preact/signals";

export const announcement = signal("");

export function announce(text: string): void {
  // The same words twice are spoken twice only if the region changes in between.
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}
