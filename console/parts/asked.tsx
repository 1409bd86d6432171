/** Shows that an answer is on its way, or why it failed. */
import type { ComponentChildren } from "preact";
import { Refusal } from "../core/request.ts";
import type { Asked } from "../core/use-answer.ts";

interface Props<Of> {
  of: Asked<Of>;
  children: (answer: Of) => ComponentChildren;
}

export function Show<Of>({ of, children }: Props<Of>) {
  const { answer, failure, isLoading, reload } = of;
  return (
    <div class={isLoading && answer ? "stale" : undefined} aria-busy={isLoading}>
      {failure && <Failed failure={failure} again={reload} />}
      {answer ? children(answer) : !failure && <p class="waiting">Loading…</p>}
    </div>
  );
}

export function Failed({ failure, again }: { failure: Error; again?: () => void }) {
  const { requestId = null } = failure instanceof Refusal ? failure : {};
  return (
    <div class="failed" role="alert">
      <p>{failure.message}</p>
      {requestId && (
        <p class="fine">
          Request <code>{requestId}</code>
        </p>
      )}
      {again && (
        <button type="button" class="small" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}
