/** The life of a request as a line: admitted, each attempt, the first token, settled. */
import type { Answer } from "../core/client.ts";
import { milliseconds } from "../core/format.ts";
import { moneyWritten } from "../core/money.ts";

type Request = Answer<"findRequest">;
interface Event {
  name: string;
  /** Milliseconds since the admission. */
  at_ms: number | null;
  isBad?: boolean;
}

export function LifeLine({ request }: { request: Request }) {
  const events = eventsOf(request);
  return (
    <ol class="life" aria-label="Life of the request">
      {events.map(({ name, at_ms, isBad }, at) => (
        <li key={`${name} ${at}`} class={isBad ? "bad" : undefined}>
          <span class="life-name">{name}</span>
          <span class="fine">{at_ms !== null && `${milliseconds(at_ms)} after the admission`}</span>
        </li>
      ))}
    </ol>
  );
}

function eventsOf({ outcome, route, duration_ms, cost }: Request): Event[] {
  if (outcome === "refused") return [{ name: "refused", at_ms: null, isBad: true }];
  const held = { name: `admitted, ${moneyWritten(cost.held)} held`, at_ms: null };
  const first = route?.first_part_ms ?? null;
  return [
    held,
    ...attemptsOf(route),
    ...(first === null ? [] : [{ name: "first token", at_ms: first }]),
    outcome === "running"
      ? { name: "running", at_ms: null }
      : { name: `${outcome} and settled`, at_ms: duration_ms, isBad: outcome === "failed" },
  ];
}

/** Attempts follow each other, so each begins where the ones before it ended. */
function attemptsOf(route: Request["route"]): Event[] {
  if (!route) return [];
  if (route.tried.length === 0) return [{ name: `${route.upstream} asked`, at_ms: null }];
  let at_ms = 0;
  return route.tried.map(({ upstream, replica, outcome, ms, continued }) => {
    const name = `${continued ? "continued by " : ""}${upstream}${replica ? ` ${replica}` : ""}: ${outcome}`;
    at_ms += ms;
    return { name, at_ms, isBad: !["completed", "ok", "answered"].includes(outcome) };
  });
}
