/** Instants in the reader's zone. */
import { signal } from "@preact/signals";
import { distance, local, utc } from "../core/format.ts";

/** The current time, which advances every ten seconds, and only while the tab is visible. */
const now = signal(new Date());
setInterval(() => {
  if (!document.hidden) now.value = new Date();
}, 10_000);

/** An instant in the reader's zone, with UTC on hover. */
export function Time({ at, none = "–" }: { at: string | Date | null | undefined; none?: string }) {
  if (!at) return <>{none}</>;
  const instant = new Date(at);
  return (
    <time dateTime={instant.toISOString()} title={utc(instant)}>
      {local(instant)}
    </time>
  );
}

/** An instant's distance from now; hovering shows it in the reader's zone and in UTC. */
export function Distance({ at, none = "–" }: { at: string | null | undefined; none?: string }) {
  if (!at) return <>{none}</>;
  const instant = new Date(at);
  return (
    <time dateTime={instant.toISOString()} title={`${local(instant)} here, ${utc(instant)}`}>
      {distance(instant, new Date(Math.max(now.value.getTime(), Date.now())))}
    </time>
  );
}
