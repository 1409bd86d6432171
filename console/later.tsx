/** Pages and parts of pages whose code is loaded after the rest of the console, so that the first load stays small. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

type Charts = typeof import("./charts.ts");
type Found<Props> = { Part: FunctionComponent<Props> } | "waiting" | "failed";

const load = () => import("./charts.ts");

/** Loads that code before a page needs it. If loading fails, the page that needs the code reports it. */
export const loadEarly = () => void load().catch(() => {});

export function later<Props extends object>(
  of: (charts: Charts) => FunctionComponent<Props>,
): FunctionComponent<Props> {
  return function Later(props: Props) {
    const [found, setFound] = useState<Found<Props>>("waiting");
    useEffect(() => {
      load().then(
        (charts) => setFound({ Part: of(charts) }),
        // Loading fails if the server has a newer version meanwhile, whose files have other names.
        () => setFound("failed"),
      );
    }, []);
    if (found === "waiting") return <p class="waiting">Loading…</p>;
    if (found !== "failed") return <found.Part {...props} />;
    return (
      <p class="failed" role="alert">
        The charts could not be loaded. Load the console again.
      </p>
    );
  };
}

/** The spend of one subject, for the subject's page: `<SubjectSpend of={{ team: id }} />`. */
export const SubjectSpend = later((charts) => charts.SubjectSpend);
