/** The engines as the nodes see them. */
import type { ComponentChildren } from "preact";
import type { Answer } from "../core/client.ts";
import { grouped } from "../core/format.ts";
import { Empty, State } from "./section.tsx";
import { Table } from "./table.tsx";

export type Engine = Answer<"getFleet">["engines"][number];
export type Drain = Answer<"listDrains">["data"][number];

interface Props {
  engines: readonly Engine[];
  drains: readonly Drain[];
  acts?: (engine: Engine, drain: Drain | undefined) => ComponentChildren;
}

export function EngineTable({ engines, drains, acts }: Props) {
  if (engines.length === 0) {
    return <Empty>No node reports an engine yet. Engines are listed under upstreams in sluice.yaml.</Empty>;
  }
  const isOne = engines.length === 1;
  const sum = (value: (engine: Engine) => number) =>
    isOne ? undefined : grouped(engines.reduce((total, one) => total + value(one), 0));
  return (
    <Table<Engine>
      caption="Engines"
      rows={engines}
      keyOf={nameOf}
      columns={[
        { head: "Engine", cell: (engine) => <EngineLink of={engine} />, foot: isOne ? undefined : "Sum" },
        { head: "Routes", cell: (engine) => <RoutesState of={engine} drain={drainOf(engine, drains)} /> },
        {
          head: "In flight",
          isNumber: true,
          cell: ({ requests, requests_max }) =>
            requests_max === null ? grouped(requests) : `${grouped(requests)} of ${grouped(requests_max)}`,
          foot: sum((one) => one.requests),
        },
        {
          head: "Tokens in flight",
          isNumber: true,
          cell: ({ tokens }) => grouped(tokens),
          foot: sum((one) => one.tokens),
        },
        { head: "Waiting", isNumber: true, cell: ({ waiting }) => grouped(waiting), foot: sum((one) => one.waiting) },
        acts ? { head: "Actions", areActs: true, cell: (engine) => acts(engine, drainOf(engine, drains)) } : null,
      ]}
    />
  );
}

function EngineLink({ of }: { of: Engine }) {
  return <a href={`/engines/${encodeURIComponent(of.upstream)}`}>{nameOf(of)}</a>;
}

export const nameOf = ({ upstream, replica }: Engine) => (replica === null ? upstream : `${upstream} ${replica}`);

function drainOf(engine: Engine, drains: readonly Drain[]): Drain | undefined {
  return drains.find(
    ({ upstream, replica }) => upstream === engine.upstream && (replica === null || replica === engine.replica),
  );
}

/** The words for a breaker's states: a closed one lets requests pass, which readers know as ready. */
const words: Record<string, string> = { closed: "ready", "half-open": "on trial", open: "failing" };

export function RoutesState({ of, drain }: { of: Engine; drain: Drain | undefined }) {
  return (
    <span class="badges">
      {drain && <State of="drained" />}
      {of.states
        .filter(({ routes }) => routes > 0)
        .map(({ state, routes }) => (
          <State key={state} of={state} words={`${routes} ${words[state] ?? state.replaceAll("_", " ")}`} />
        ))}
    </span>
  );
}
