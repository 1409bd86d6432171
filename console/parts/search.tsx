/** Finds a thing by its ID or name, and goes to its page. `/` comes here from everywhere, and `g` with a letter to a page. */
import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../core/address.ts";
import { may } from "../core/session.ts";
import type { PageEntry } from "../pages.ts";

export function Search({ pages }: { pages: readonly PageEntry[] }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  useShortcuts(pages, () => input.current?.focus());
  const submit = (event: Event) => {
    event.preventDefault();
    const place = placeOf(text.trim());
    if (place === null) return;
    go(place);
    setText("");
    input.current?.blur();
  };
  return (
    <form class="search" onSubmit={submit}>
      <input
        ref={input}
        type="search"
        aria-label="Search: ID of a request, organization or person"
        placeholder="Request ID, organization, person"
        value={text}
        spellcheck={false}
        autoComplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      />
      <kbd>/</kbd>
    </form>
  );
}

/** An ID says what it is of; an address has a person; all else is an organization's slug. */
function placeOf(text: string): string | null {
  if (text === "") return null;
  const id = encodeURIComponent(text);
  if (text.startsWith("req_")) return `/requests/${id}`;
  if (text.startsWith("key_")) return `/requests?key=${id}`;
  if (text.startsWith("team_")) return `/requests?team=${id}`;
  if (text.startsWith("per_")) return `/people/${id}`;
  if (/[@\s]/.test(text) && may("pagePeople")) return `/people?search=${id}`;
  return `/organizations/${id}`;
}

function useShortcuts(pages: readonly PageEntry[], focus: () => void): void {
  useEffect(() => {
    let isGoing = false;
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as Element;
      const isTyping = target.matches("input, select, textarea") || target.closest("dialog") !== null;
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const page = isGoing ? pages.find(({ key }) => key === event.key) : undefined;
      isGoing = event.key === "g";
      if (page) go(page.path);
      if (event.key !== "/") return;
      event.preventDefault();
      focus();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [pages, focus]);
}
