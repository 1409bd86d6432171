/**
 * The page Engines: the routes, breakers, queues and load of all engines, the actions that drain and resume an engine,
 * and the outcomes of requests over a day.
 */
import { useState } from "preact/hooks";
import type { Answer } from "../core/client.ts";
import { useAnswer, useLive } from "../core/use-answer.ts";
import { Act } from "../parts/act.tsx";
import { Failed } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type Drain, type Engine, EngineTable, nameOf } from "../parts/engine-table.tsx";
import { Page, Section } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { lastDay, UpstreamHours } from "../parts/upstream-hours.tsx";

export function EnginesPage() {
  const [now_ms] = useState(Date.now);
  const [fleet, setFleet] = useState<Answer<"getFleet"> | null>(null);
  const failure = useLive("getFleet", setFleet);
  const drained = useAnswer("listDrains", {});
  const drains = drained.answer?.data ?? [];
  return (
    <Page title="Engines" aside={<span class={failure ? "late" : "live"}>as all nodes see them</span>}>
      {failure && <Failed failure={failure} />}
      {fleet ? (
        <EngineTable
          engines={fleet.engines}
          drains={drains}
          acts={(engine, drain) => <EngineActs engine={engine} drain={drain} changed={drained.reload} />}
        />
      ) : (
        !failure && <p class="waiting">Loading…</p>
      )}
      {fleet && fleet.engines_left_out > 0 && <p class="fine">{fleet.engines_left_out} more are not reported.</p>}
      {drains.length > 0 && <Drains of={drains} />}
      <CommandLine verb={drains.length > 0 ? "listDrains" : "getFleet"} />
      <UpstreamHours of={{}} range={lastDay(now_ms)} now_ms={now_ms} />
      <CommandLine verb="reportUpstreams" />
    </Page>
  );
}

export function EngineActs({
  engine,
  drain,
  changed,
}: {
  engine: Engine;
  drain: Drain | undefined;
  changed: () => void;
}) {
  const name = nameOf(engine);
  const given = { upstream: engine.upstream, ...(engine.replica === null ? {} : { replica: engine.replica }) };
  if (drain) {
    return (
      <Act
        label="Resume"
        verb="resumeUpstream"
        given={{ upstream: drain.upstream, ...(drain.replica === null ? {} : { replica: drain.replica }) }}
        says={`${name} gets requests again, on every node within a second.`}
        done={`${name} is resumed.`}
        onDone={changed}
      />
    );
  }
  return (
    <Act
      label="Drain"
      verb="drainUpstream"
      given={given}
      says={`${name} gets no new requests on any node within a second. ${engine.requests} in flight are finished. It lasts over restarts, until it is resumed.`}
      done={`${name} is drained.`}
      onDone={changed}
    />
  );
}

function Drains({ of }: { of: readonly Drain[] }) {
  return (
    <Section title="Drained">
      <Table
        caption="Drained engines"
        rows={of}
        keyOf={({ upstream, replica }) => `${upstream} ${replica}`}
        columns={[
          { head: "Engine", cell: ({ upstream, replica }) => `${upstream} ${replica ?? "(all addresses)"}` },
          { head: "Since", cell: ({ drained_at }) => <Time at={drained_at} /> },
          { head: "Until", cell: ({ until }) => <Time at={until} none="resumed" /> },
          { head: "By", cell: ({ actor }) => actor },
        ]}
      />
    </Section>
  );
}
