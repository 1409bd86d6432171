/** The parts of a page. Each has an address, so that it can be sent to somebody. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Empty } from "./section.tsx";

export interface Tab {
  name: string;
  /** The end of the part's address; empty: it is the first part. */
  path: string;
  shows: () => ComponentChildren;
}

interface Props {
  base: string;
  /** The part that the address names. */
  tab: string;
  /** The parts of the page. False stands for a part that the reader may not see. */
  of: readonly (Tab | false)[];
}

export function Tabs({ base, tab, of }: Props) {
  const seen = of.filter((one) => one !== false);
  const current = seen.find(({ path }) => path === tab);
  const places = seen.map(({ name, path }) => ({ name, href: path === "" ? base : `${base}/${path}`, path }));
  return (
    <>
      <Choices label="Parts of the page" of={places} isChosen={({ path }) => path === tab} />
      {current ? (
        current.shows()
      ) : (
        <Empty>
          <p>This page has no such part, or you may not see it.</p>
          <a href={base}>Go to its first part</a>
        </Empty>
      )}
    </>
  );
}

interface ChoicesProps<Of> {
  label: string;
  of: readonly Of[];
  isChosen: (one: Of) => boolean;
  isSmall?: boolean;
}

/** Links of which the current one is marked. */
export function Choices<Of extends { name: string; href: string }>({ label, of, isChosen, isSmall }: ChoicesProps<Of>) {
  const nav = useRef<HTMLElement>(null);
  const at = of.findIndex(isChosen);
  useEffect(() => {
    // On a narrow screen the link to the current part may be beyond the edge.
    const [strip, link] = [nav.current!, nav.current!.children[at] as HTMLElement | undefined];
    if (link) strip.scrollLeft = link.offsetLeft - strip.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2;
  }, [at]);
  return (
    <nav ref={nav} class={isSmall ? "choices" : "tabs"} aria-label={label}>
      {of.map((one) => (
        <a key={one.href} href={one.href} aria-current={isChosen(one) ? "page" : undefined}>
          {one.name}
        </a>
      ))}
    </nav>
  );
}
