/**
 * A search over everything that has a name or an ID, and the pages. `/` and Ctrl-K move the focus here from everywhere,
 * and `g` with a letter opens a page.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go } from "../core/address.ts";
import { wordsOf } from "../core/format.ts";
import { type Found, useSearch } from "../core/use-search.ts";
import type { PageEntry } from "../pages.ts";
import { Combobox, type Option } from "./combobox.tsx";

interface Place extends Option {
  href: string;
}

export function Search({ pages }: { pages: readonly PageEntry[] }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isWaiting, setWaiting] = useState(false);
  const { found, isCurrent } = useSearch(text);
  const places = [...pagesNamed(pages, text), ...found.map(placeOf)];
  useShortcuts(pages, input);
  const open = ({ href }: Place) => {
    setText("");
    setWaiting(false);
    input.current?.blur();
    go(href);
  };
  useEffect(() => {
    if (!isWaiting || !isCurrent) return;
    setWaiting(false);
    if (places[0]) open(places[0]);
  }, [isWaiting, isCurrent]);
  return (
    <search class="search">
      <Combobox<Place>
        label="Search"
        placeholder="Search people, teams, keys, requests…"
        text={text}
        setText={(typed) => {
          setText(typed);
          setWaiting(false);
        }}
        // Results of an earlier text are not offered, since they would be opened by mistake.
        options={isCurrent ? places : pagesNamed(pages, text)}
        none={isCurrent && text.trim() !== "" ? `Nothing was found for “${text.trim()}”.` : null}
        choose={open}
        submit={() => setWaiting(text.trim() !== "" && !isCurrent)}
        input={input}
      />
      <kbd>/</kbd>
    </search>
  );
}

function pagesNamed(pages: readonly PageEntry[], text: string): Place[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  return pages
    .filter(({ name }) => name.toLowerCase().startsWith(wanted))
    .map(({ path, name }) => ({ key: path, name, more: "page", href: path }));
}

const paths: Record<Found["kind"], (one: Found) => string> = {
  organization: ({ organization }) => `/organizations/${organization}`,
  team: ({ id }) => `/teams/${id}`,
  person: ({ id }) => `/people/${id}`,
  key: ({ id }) => `/keys/${id}`,
  request: ({ id }) => `/requests/${id}`,
  model: ({ id }) => `/models/${id.split("/").map(encodeURIComponent).join("/")}`,
};

function placeOf(one: Found): Place {
  const { kind, id, name, organization, detail } = one;
  const of = kind === "organization" || organization === null ? null : `of ${organization}`;
  return {
    key: id,
    name,
    more: [kind, of, detail && wordsOf(detail)].filter(Boolean).join(" · "),
    href: paths[kind](one),
  };
}

function useShortcuts(pages: readonly PageEntry[], input: { current: HTMLInputElement | null }): void {
  // A layout effect, so that keys work as soon as the page is visible.
  useLayoutEffect(() => {
    let isGoing = false;
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (target.closest("dialog") !== null) return;
      const isSearch = (event.ctrlKey || event.metaKey) && event.key === "k";
      const isTyping = target.matches("input, select, textarea");
      if (isTyping && !isSearch) return;
      if (isSearch || (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey)) {
        event.preventDefault();
        input.current?.focus();
        input.current?.select();
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const page = isGoing ? pages.find(({ key }) => key === event.key) : undefined;
      isGoing = event.key === "g";
      if (page) go(page.path);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [pages, input]);
}
