/** Pages whose code is loaded when somebody opens them, so that the first load stays small. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Page } from "./parts/section.tsx";

export function later<Props extends object>(load: () => Promise<FunctionComponent<Props>>): FunctionComponent<Props> {
  return function Later(props: Props) {
    const [found, setFound] = useState<{ Part: FunctionComponent<Props> } | { failure: string } | null>(null);
    useEffect(() => {
      load().then(
        (Part) => setFound({ Part }),
        // A newer version of the server has other files.
        () => setFound({ failure: "This page could not be loaded. Load the console again." }),
      );
    }, []);
    if (found === null) return <p class="waiting">Loading…</p>;
    if ("Part" in found) return <found.Part {...props} />;
    return (
      <Page title="Not loaded">
        <p class="failed" role="alert">
          {found.failure}
        </p>
      </Page>
    );
  };
}
