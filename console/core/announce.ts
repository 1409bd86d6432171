/** Announces changes to screen readers, through one region of the frame, which all pages share. */
import { signal } from "@preact/signals";

export const announcement = signal("");

export function announce(text: string): void {
  // Screen readers speak the same words twice only if the region changes in between.
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}
