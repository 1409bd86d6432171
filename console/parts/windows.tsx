/** The windows of a subject: used, held, limit, and when each begins anew. */
import type { Answer } from "../core/client.ts";
import { limitWords } from "../core/form.ts";
import { grouped, percent } from "../core/format.ts";
import { exactly, figureOf, moneyWritten } from "../core/money.ts";
import { Bar } from "./number.tsx";
import { Distance } from "./time.tsx";

type Standing = NonNullable<Answer<"findTeam">["standing"]>;
type Window = Standing["week"];

export const windowKinds = ["session", "week", "month"] as const;

export function Windows({ of }: { of: Omit<Standing, "usage_percent"> }) {
  return (
    <div class="windows">
      {windowKinds.map((kind) => (
        <WindowLine key={kind} name={limitWords(kind)} window={of[kind]} />
      ))}
      <RunningLine of={of} />
    </div>
  );
}

/** The use of limits for models, by their patterns. Windows that a pattern has no limit for are left out. */
export function ModelWindows({ of }: { of: Readonly<Record<string, Standing>> }) {
  return (
    <>
      {Object.entries(of).map(([pattern, standing]) => {
        const limited = windowKinds.filter((kind) => standing[kind].limit !== null);
        const isRunningLimited = standing.concurrent_requests !== null;
        if (limited.length === 0 && !isRunningLimited) return null;
        return (
          <div key={pattern} class="windows">
            <div class="window-name">
              for <code>{pattern}</code>
            </div>
            {limited.map((kind) => (
              <WindowLine key={kind} name={limitWords(kind)} window={standing[kind]} models={pattern} />
            ))}
            {isRunningLimited && <RunningLine of={standing} models={pattern} />}
          </div>
        );
      })}
    </>
  );
}

const forModels = (models: string | undefined) => (models === undefined ? "" : ` for ${models}`);

function RunningLine({ of, models }: { of: Omit<Standing, "usage_percent">; models?: string }) {
  return (
    <div class="window">
      <span class="window-name">running now</span>
      <span class="window-bar">
        {of.concurrent_requests !== null && (
          <Bar
            used={of.running_requests}
            limit={of.concurrent_requests}
            label={`Running requests${forModels(models)}`}
          />
        )}
      </span>
      <span class="window-figure">
        {grouped(of.running_requests)}
        {of.concurrent_requests !== null && ` of ${grouped(of.concurrent_requests)}`}{" "}
        {(of.concurrent_requests ?? of.running_requests) === 1 ? "request" : "requests"}
      </span>
      <span class="window-reset" />
    </div>
  );
}

function WindowLine({ name, window, models }: { name: string; window: Window; models?: string }) {
  const { used, held, limit, reset_at, usage_percent: share } = window;
  const all = `${exactly(used)} used, ${exactly(held)} held`;
  return (
    <div class="window">
      <span class="window-name">{name}</span>
      <span class="window-bar">
        {limit !== null && (
          <Bar
            used={figureOf(used)}
            held={figureOf(held)}
            limit={figureOf(limit)}
            label={`Used of the ${name}${forModels(models)}`}
          />
        )}
      </span>
      <span class="window-figure" title={limit === null ? all : `${all}, limit ${exactly(limit)}`}>
        {limit === null
          ? `${moneyWritten(used)}, no limit`
          : `${percent(share)} · ${moneyWritten(used)} of ${moneyWritten(limit)}`}
        {figureOf(held) > 0 && <span class="fine"> + {moneyWritten(held)} held</span>}
      </span>
      <span class="window-reset fine">
        resets <Distance at={reset_at} />
      </span>
    </div>
  );
}

/** The used share of the tightest limit, for a row of a list. */
export function Share({ of }: { of: Pick<Standing, "usage_percent" | "month"> | null }) {
  const known = of?.usage_percent ?? null;
  if (known === null) return <span class="fine">no limit</span>;
  // The interface rounds down to a hundredth of a percent; 0 is shown only if nothing was used at all.
  const share = known === 0 && figureOf(of!.month.used) > 0 ? 0.01 : known;
  return (
    <span class="share">
      <Bar used={share} limit={100} label="Used of the tightest limit" />
      <span>{percent(share)}</span>
    </span>
  );
}
