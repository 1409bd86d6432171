/** The current state over all nodes: what runs, and what needs attention. */
import { useState } from "preact/hooks";
import type { Answer } from "../core/client.ts";
import { limitWords } from "../core/form.ts";
import { grouped, local, milliseconds, percent, rate } from "../core/format.ts";
import { may, session } from "../core/session.ts";
import { useAnswer, useLive } from "../core/use-answer.ts";
import { Failed } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { EngineTable } from "../parts/engine-table.tsx";
import { ThingLink } from "../parts/links.tsx";
import { Bar } from "../parts/number.tsx";
import { Empty, Page, Section } from "../parts/section.tsx";
import { Spark } from "../parts/spark.tsx";
import { Distance } from "../parts/time.tsx";

type Fleet = Answer<"getFleet">;
interface Moment {
  at: Date;
  fleet: Fleet;
}

/** The number of values that the small charts beside the figures show. */
const history_max = 150;

export function NowPage() {
  const [moments, setMoments] = useState<readonly Moment[]>([]);
  const failure = useLive("getFleet", (fleet) =>
    setMoments((before) => [...before.slice(1 - history_max), { at: new Date(), fleet }]),
  );
  const due = useDue();
  const last = moments.at(-1);
  return (
    <Page title="Now" aside={last && <span class={failure ? "late" : "live"}>as of {local(last.at).slice(11)}</span>}>
      {failure && <Failed failure={failure} />}
      {last ? (
        <FleetView fleet={last.fleet} moments={moments} due={due} />
      ) : (
        !failure && <p class="waiting">Loading…</p>
      )}
      <CommandLine verb="getFleet" />
    </Page>
  );
}

interface FleetProps {
  fleet: Fleet;
  moments: readonly Moment[];
  due: Due;
}

function FleetView({ fleet, moments, due }: FleetProps) {
  const strip = (value: (fleet: Fleet) => number | null) => moments.map((one) => value(one.fleet));
  const { nodes } = fleet;
  return (
    <>
      <div class="dials">
        <Dial
          name="Output"
          figure={rate(fleet.output_tokens_per_second)}
          unit="tokens/s"
          more={`${rate(fleet.input_tokens_per_second)} tokens/s in`}
          strip={strip((one) => one.output_tokens_per_second)}
        />
        <Dial
          name="Running"
          figure={grouped(fleet.running)}
          unit={fleet.running === 1 ? "request" : "requests"}
          more={`${grouped(fleet.waiting)} waiting for an engine`}
          strip={strip((one) => one.running)}
        />
        <Dial
          name="First token"
          figure={milliseconds(fleet.first_part_p50_ms)}
          unit="median"
          more={`95 % within ${milliseconds(fleet.first_part_p95_ms)}`}
          strip={strip((one) => one.first_part_p50_ms)}
        />
        <Dial
          name="Ended"
          figure={rate(fleet.requests_per_second)}
          unit="requests/s"
          more={`${rate(fleet.failures_per_second)} failed/s`}
          strip={strip((one) => one.requests_per_second)}
        />
      </div>
      <Section title="Needs attention" aside={nodesInWords(nodes)}>
        <Attention warnings={fleet.warnings} due={due} />
      </Section>
      <div class="columns">
        <Section title="Engines" aside={<a href="/engines">All</a>}>
          <EngineTable engines={fleet.engines} drains={[]} />
        </Section>
        <Section title="Nearest to a limit" aside={<a href="/organizations?over=75">All over 75 %</a>}>
          <Nearest of={fleet.nearest} />
        </Section>
      </div>
      {session.value?.embedded && <FirstSteps />}
    </>
  );
}

function Dial({ name, figure, unit, more, strip }: DialProps) {
  return (
    <div class="dial">
      <h2>{name}</h2>
      <p class="figure">
        {figure} <span class="unit">{unit}</span>
      </p>
      <Spark values={strip} label={`${name}, the last minutes`} />
      <p class="fine">{more}</p>
    </div>
  );
}
interface DialProps {
  name: string;
  figure: string;
  unit: string;
  more: string;
  strip: (number | null)[];
}

function nodesInWords(nodes: Fleet["nodes"]) {
  const parts = Object.entries(nodes).filter(([state, count]) => count > 0 || state === "ready");
  return <a href="/nodes">nodes: {parts.map(([state, count]) => `${count} ${state.replace("_", " ")}`).join(", ")}</a>;
}

/** How long before its expiry a key is listed under "Needs attention". */
const soon = "7d";
const named_max = 5;

type Due = ReturnType<typeof useDue>;

/** Asks for the keys that expire soon and the undelivered notices while the fleet's state loads, not after it. */
function useDue() {
  const ending = useAnswer("pageKeys", { ends_within: soon, limit: named_max + 1 });
  const silent = useAnswer("pageNotices", { undelivered: true, limit: named_max + 1 });
  return { ending, silent };
}

function Attention({ warnings, due: { ending, silent } }: { warnings: readonly string[]; due: Due }) {
  const keys = ending.answer?.data ?? [];
  const hooks = silent.answer?.data ?? [];
  const failure = ending.failure ?? silent.failure;
  if (warnings.length + keys.length + hooks.length === 0 && !failure)
    return ending.isLoading || silent.isLoading ? (
      <p class="waiting">Loading…</p>
    ) : (
      <p class="calm-words">Nothing. All checks pass.</p>
    );
  return (
    <ul class="warnings">
      {failure && (
        <li>
          <Failed failure={failure} />
        </li>
      )}
      {warnings.map((warning) => (
        <li key={warning}>{warning}</li>
      ))}
      {keys.slice(0, named_max).map(({ id, name, organization, ends_at }) => (
        <li key={id}>
          The key <ThingLink kind="key" id={id} name={name} /> of{" "}
          <a href={`/organizations/${organization}`}>{organization}</a> expires <Distance at={ends_at} />.
        </li>
      ))}
      {keys.length > named_max && (
        <li>
          More keys expire within seven days: <CommandLine verb="pageKeys" input={{ ends_within: soon }} />
        </li>
      )}
      {hooks.slice(0, named_max).map(({ id, organization, name, problem, waiting }) => (
        <li key={id}>
          A notice to <a href={organization === null ? "/notices" : `/organizations/${organization}/notices`}>{name}</a>{" "}
          of {organization ?? "the fleet"} was not delivered: {problem}
          {waiting > 0 ? `; ${grouped(waiting)} to be sent.` : "."}
        </li>
      ))}
      {hooks.length > named_max && (
        <li>
          More notices were not delivered: <CommandLine verb="pageNotices" input={{ undelivered: true }} />
        </li>
      )}
    </ul>
  );
}

function Nearest({ of }: { of: Fleet["nearest"] }) {
  if (of.length === 0) return <Empty>No organization has used part of a limit yet.</Empty>;
  return (
    <ul class="nearest">
      {of.map(({ organization, models, window, usage_percent, reset_at }) => (
        <li key={`${organization} ${models}`}>
          <a href={`/organizations/${organization}`}>{organization}</a>
          <Bar used={usage_percent} limit={100} label={`${organization}, used of the ${limitWords(window)}`} />
          <span>{percent(usage_percent)}</span>
          <span class="fine">
            of the {limitWords(window)}
            {models && ` for ${models}`}, resets <Distance at={reset_at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Instructions for an operator who has just started the server for the first time. */
function FirstSteps() {
  if (!may("createOrganization")) return null;
  return (
    <Section title="First steps">
      <ol class="steps">
        <li>
          Point a client at this server: the <a href="/connect">blocks to copy</a> have its address.
        </li>
        <li>
          Put an engine in the place of the simulator:{" "}
          <CommandLine text="npm run sluice -- init --upstream http://localhost:11434/v1" />
        </li>
        <li>
          Create an <a href="/organizations">organization</a> with a plan, and a key for each client.
        </li>
      </ol>
    </Section>
  );
}
