/** The frame around every page: navigation, search, who is signed in, and the region that speaks to screen readers. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { path } from "./core/address.ts";
import { announcement } from "./core/announce.ts";
import { actsIn } from "./core/http.ts";
import { changeOrganization, membership, session, signOut } from "./core/session.ts";
import { nextTheme, theme } from "./core/theme.ts";
import { isListed, isSeen, type PageEntry, pages } from "./pages.ts";
import { Search } from "./parts/search.tsx";
import { Empty, Page } from "./parts/section.tsx";

export function Frame() {
  const seen = pages.filter(isSeen);
  const listed = seen.filter(isListed);
  const { page, id, tab } = placeOf(path.value, seen);
  const current = page?.path;
  const name = page?.name ?? "Not found";
  // The page and the search show one organization. When the reader switches to another one, both start anew.
  const organization = actsIn.value ?? "";
  useEffect(() => {
    announcement.value = name;
  }, [name, id]);
  const rail = useRef<HTMLElement>(null);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    // After a change of page, the next Tab must go to the first element of the new page, not on from the link that was
    // followed. This runs before the paint, so that a key pressed right after it already finds the focus moved.
    if (!isFirst.current) main.current!.focus({ preventScroll: true });
    isFirst.current = false;
  }, [page, id]);
  useEffect(() => {
    // On a narrow screen the links to the pages are in one row, so the current one may have to be scrolled into view.
    const link = rail.current?.querySelector<HTMLElement>("[aria-current]");
    if (link) rail.current!.scrollLeft = link.offsetLeft - (rail.current!.clientWidth - link.offsetWidth) / 2;
  }, [page]);
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <nav class="rail" aria-label="Pages" ref={rail}>
        <a class="brand" href="/" aria-label="Sluice, first page">
          <Mark /> <span>Sluice</span>
        </a>
        <ul>
          {listed.map((one) => (
            <li key={one.path}>
              <a href={one.path} aria-current={one.path === current ? "page" : undefined} title={`g ${one.key}`}>
                {one.name}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="side">
        <header class="top">
          <Search key={organization} pages={listed} />
          <Who />
        </header>
        <main id="main" tabIndex={-1} ref={main}>
          <PageShown key={organization} page={page} id={id} tab={tab} first={listed[0]} />
        </main>
      </div>
      <div class="hidden" role="status" aria-live="polite">
        {announcement}
      </div>
    </div>
  );
}

function PageShown({ page, id, tab, first }: Place & { first: PageEntry | undefined }) {
  if (page?.one && id !== "") return <page.one key={id} id={id} tab={tab} />;
  if (page?.list && isListed(page) && id === "") return <page.list />;
  return (
    <Page title="Not found">
      <Empty>
        <p>There is no page at this address, or you may not see it.</p>
        {first && <a href={first.path}>Go to {first.name}</a>}
      </Empty>
    </Page>
  );
}

interface Place {
  page: PageEntry | undefined;
  /** The id of the thing on the page; `tab` is the tab of the page. */
  id: string;
  tab: string;
}

/** The page at an address. Readers without the right to see the first page get the first one that they may see. */
function placeOf(path: string, seen: readonly PageEntry[]): Place {
  const [, first = "", ...rest] = path.split("/");
  const page = seen.find((one) => one.path === `/${first}`) ?? (first === "" ? seen[0] : undefined);
  const [id = "", ...part] = page?.hasParts ? rest : [rest.join("/")];
  return { page, id: decoded(id), tab: decoded(part.join("/")) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function Who() {
  const { name = "", email, memberships = [], role } = session.value ?? {};
  const own = membership.value;
  const [failure, setFailure] = useState<string | null>(null);
  const change = async (field: HTMLSelectElement) => {
    setFailure(null);
    await changeOrganization(field.value).catch((refusal: Error) => {
      field.value = own!.organization;
      setFailure(refusal.message);
    });
  };
  const themes = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  return (
    <div class="who">
      {failure && <span role="alert">{failure}</span>}
      {own && memberships.length > 1 ? (
        <select aria-label="Organization" value={own.organization} onChange={(event) => change(event.currentTarget)}>
          {memberships.map(({ organization }) => (
            <option key={organization} value={organization}>
              {organization}
            </option>
          ))}
        </select>
      ) : (
        own && <span class="fine">{own.organization}</span>
      )}
      <span class="who-name" title={email}>
        {name} <span class="fine">{(own?.role ?? role ?? "").replace("-", " ")}</span>
      </span>
      <button type="button" class="quiet small" onClick={nextTheme}>
        {themes[theme.value]}
      </button>
      <button type="button" class="quiet small" onClick={signOut}>
        Sign out
      </button>
    </div>
  );
}

/** The logo: a gate in a stream. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M2 1.5h2.2v13H2zM11.8 1.5H14v13h-2.2zM5.5 3h5v5h-5z" />
      <path class="stream" d="M5.5 10h5v1.2h-5zM5.5 12.8h5V14h-5z" />
    </svg>
  );
}
