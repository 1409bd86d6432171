/** THE PAGES: each with its address, its name in the navigation, and the verb that one needs to see it. */
import type { FunctionComponent } from "preact";
import type { VerbName } from "./core/client.ts";
import { EnginesPage } from "./pages/engines.tsx";
import { NowPage } from "./pages/now.tsx";

export interface PageProps {
  /** What stands after the page's path in the address. */
  id: string;
}

export interface PageEntry {
  path: string;
  name: string;
  /** The key that goes to it, after `g`. */
  key: string;
  needs: VerbName | null;
  list: FunctionComponent;
  /** The page of one thing. */
  one?: FunctionComponent<PageProps>;
}

export const pages: readonly PageEntry[] = [
  { path: "/", name: "Now", key: "n", needs: "getFleet", list: NowPage },
  { path: "/engines", name: "Engines", key: "e", needs: "getFleet", list: EnginesPage },
];
