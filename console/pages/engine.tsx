/** One engine: its state now, its history of a day, and what it serves. */
import { useState } from "preact/hooks";
import type { Answer } from "../core/client.ts";
import { useAnswer, useLive } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Failed, Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { EngineTable } from "../parts/engine-table.tsx";
import { ModelLink } from "../parts/model-table.tsx";
import { Empty, Facts, Page, Section } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { lastDay, UpstreamHours } from "../parts/upstream-hours.tsx";
import { EngineActs } from "./engines.tsx";

type Configuration = Answer<"showConfiguration">;

export function EnginePage({ id }: PageProps) {
  const [fleet, setFleet] = useState<Answer<"getFleet"> | null>(null);
  const [now_ms] = useState(Date.now);
  const failure = useLive("getFleet", setFleet);
  const drained = useAnswer("listDrains", {});
  const configuration = useAnswer("showConfiguration", {});
  const seen = fleet?.engines.filter(({ upstream }) => upstream === id) ?? [];
  return (
    <Page title={id} aside={<a href={`/requests?upstream=${encodeURIComponent(id)}`}>Its requests</a>}>
      {failure && <Failed failure={failure} />}
      {!fleet && !failure && <p class="waiting">Loading…</p>}
      {fleet && seen.length === 0 && <Empty>No node reports an engine of this name now.</Empty>}
      {seen.length > 0 && (
        <EngineTable
          engines={seen}
          drains={drained.answer?.data ?? []}
          acts={(engine, drain) => <EngineActs engine={engine} drain={drain} changed={drained.reload} />}
        />
      )}
      <UpstreamHours of={{ upstream: id }} range={lastDay(now_ms)} now_ms={now_ms} />
      <Show of={configuration}>{(shown) => <Configured id={id} of={shown} />}</Show>
      <CommandLine verb="reportUpstreams" input={{ upstream: id }} />
    </Page>
  );
}

function Configured({ id, of: { upstreams, models } }: { id: string; of: Configuration }) {
  const upstream = upstreams.find(({ name }) => name === id);
  const routes = models.flatMap((model) =>
    model.routes.filter((route) => route.upstream === id).map((route) => ({ served: model.id, ...route })),
  );
  if (!upstream) return <Empty>The configuration of the answering node has no engine of this name.</Empty>;
  return (
    <>
      <Section title="Configuration">
        <Facts
          of={[
            ["address", <code key="u">{upstream.url}</code>],
            ["protocol", upstream.protocol],
            ["key", upstream.has_key ? "has one" : "none"],
            ["headers", upstream.headers.join(", ")],
          ]}
        />
      </Section>
      <Section title="Serves">
        <Table
          caption="Models of the engine"
          isDense
          rows={routes}
          keyOf={({ served, model }) => `${served} ${model}`}
          columns={[
            { head: "Model", cell: ({ served }) => <ModelLink id={served} /> },
            { head: "Name at the engine", isMinor: true, cell: ({ model }) => <code>{model}</code> },
            { head: "Priority", isNumber: true, isMinor: true, cell: ({ priority }) => priority },
            { head: "Weight", isNumber: true, isMinor: true, cell: ({ weight }) => weight },
          ]}
        />
      </Section>
    </>
  );
}
