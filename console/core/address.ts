/** The page's address, which holds the state of the page, so that it can be sent to a colleague. */
import { computed, signal } from "@preact/signals";
import { staysOn } from "./link.ts";

const current = signal(new URL(location.href));

export const path = computed(() => current.value.pathname);
export const query = computed(() => current.value.searchParams);

export function go(address: string): void {
  history.pushState(null, "", address);
  current.value = new URL(location.href);
  scrollTo(0, 0);
}

/**
 * Returns the page's address with changed query parameters. Null or "" removes a parameter. The cursor of the list is
 * removed unless `changes` sets it, so that a list whose filter changes starts from its first row.
 */
export function withQuery(changes: Record<string, string | null>): string {
  const next = new URLSearchParams(query.value);
  if (!("cursor" in changes)) next.delete("cursor");
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const written = next.toString();
  return path.value + (written === "" ? "" : `?${written}`);
}

/**
 * Replaces the address without an entry in the history. Used while somebody types, since each letter changes the
 * address.
 */
export function replaceQuery(changes: Record<string, string | null>): void {
  history.replaceState(null, "", withQuery(changes));
  current.value = new URL(location.href);
}

/** Lets the links of the pages lead to other pages without loading the document again. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    current.value = new URL(location.href);
  });
  document.addEventListener("click", (event) => {
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = (event.target as Element).closest("a");
    const leaves = !link || link.origin !== location.origin || link.target !== "" || link.hasAttribute("download");
    if (!isPlain || event.defaultPrevented || leaves || /^\/(sign-in|oauth)\b/.test(link.pathname)) return;
    if (staysOn(link, location)) return;
    event.preventDefault();
    go(link.href);
  });
}
