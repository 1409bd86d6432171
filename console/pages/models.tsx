/**
 * The page Models, with the models that the reader may use, and the page of one model: its prices, context, calls to
 * copy, engines, their health, and spend.
 */
import { useState } from "preact/hooks";
import { callsOf } from "../core/calls.ts";
import type { Answer } from "../core/client.ts";
import { grouped, wordsOf } from "../core/format.ts";
import { nanosOf, priceWritten } from "../core/money.ts";
import { isMember, may, session } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Block, Copy } from "../parts/copy.tsx";
import { RoutesState } from "../parts/engine-table.tsx";
import { type Model, ModelLink, ModelTable, makesText } from "../parts/model-table.tsx";
import { Empty, Facts, Page, Section } from "../parts/section.tsx";
import { SubjectSpend } from "../parts/subject-spend.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { TryModel } from "../parts/try-model.tsx";
import { EngineLink, lastDay, UpstreamHours } from "../parts/upstream-hours.tsx";

export function ModelsPage() {
  const asked = useAnswer("listModels", {});
  return (
    <Page title="Models" aside="prices of a million tokens">
      <Show of={asked}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>
              {isMember.value
                ? "Your membership allows no model."
                : "No model is served. Models are listed in sluice.yaml."}
            </Empty>
          ) : (
            <ModelTable models={data} />
          )
        }
      </Show>
      <CommandLine verb="listModels" />
    </Page>
  );
}

export function ModelPage({ id }: PageProps) {
  const asked = useAnswer("listModels", {});
  return (
    <Page title={id} aside={<Copy text={id} label="Copy name" />}>
      <Show of={asked}>
        {({ data }) => {
          const model = data.find((one) => one.id === id || one.aliases.includes(id));
          if (model) return <ModelParts of={model} />;
          return (
            <Empty>
              No model of this name is served to you. <a href="/models">All models</a>
            </Empty>
          );
        }}
      </Show>
    </Page>
  );
}

function ModelParts({ of: model }: { of: Model }) {
  const [now_ms] = useState(Date.now);
  const base = session.value?.base_url ?? location.origin;
  return (
    <>
      <Facts of={factsOf(model)} />
      <Section title="Call it" aside="the key is in the variable SLUICE_KEY">
        {callsOf({ base, model: model.id, kind: model.kind }).map(({ name, says, text }) => (
          <details key={name} class="call" open={name === "curl"}>
            <summary>
              {name} <span class="fine">{says}</span>
            </summary>
            <Block text={text} label={`A call with ${name}`} />
          </details>
        ))}
        {model.kind === "chat" && (
          <p class="fine">
            Coding agents and other clients: <a href={`/connect?model=${encodeURIComponent(model.id)}`}>Connect</a>
          </p>
        )}
      </Section>
      <TryModel model={model.id} />
      {may("showConfiguration") && <Engines of={model} />}
      {may("reportUpstreams") && <UpstreamHours of={{ model: model.id }} range={lastDay(now_ms)} now_ms={now_ms} />}
      <SubjectSpend of={{ model: model.id }} by={isMember.value ? "key" : "person"} />
      <CommandLine text={`sluice try ${model.id}`} />
    </>
  );
}

/** The facts about a model. Prices are for a million tokens. */
function factsOf(model: Model) {
  const { kind, aliases, context_tokens, output_tokens_limit, capabilities, prices, retires_at, replaced_by } = model;
  const { input, cached_input, cache_write, output, search } = prices;
  const million = (price: Model["prices"]["input"]) => `${priceWritten(price)} a million tokens`;
  return [
    ["kind", kind !== "chat" && kind],
    ["other names", aliases.join(", ")],
    ["context", `${grouped(context_tokens)} tokens`],
    ["longest answer", makesText(model) && `${grouped(output_tokens_limit)} tokens`],
    ["capabilities", capabilities.map(wordsOf).join(", ")],
    ["input", million(input)],
    ["cached input", million(cached_input)],
    ["written to cache", nanosOf(cache_write) !== nanosOf(input) && million(cache_write)],
    ["output", makesText(model) && million(output)],
    ["searches", search && nanosOf(search) > 0n && `${priceWritten(search)} a thousand`],
    ["retires", retires_at && <Time key="r" at={retires_at} />],
    ["use instead", replaced_by && <ModelLink key="i" id={replaced_by} />],
  ] as const;
}

type Configured = Answer<"showConfiguration">["models"][number];

/** The model's routes, with the state of their engines as the nodes see it. */
function Engines({ of: { id } }: { of: Model }) {
  const asked = useAnswer("showConfiguration", {});
  const fleet = useAnswer("getFleet", may("getFleet") ? {} : null);
  return (
    <Section title="Engines">
      <Show of={asked}>
        {({ models }) => (
          <Table<Configured["routes"][number]>
            caption="Engines of the model"
            rows={models.find((one) => one.id === id)?.routes ?? []}
            keyOf={({ upstream, model }) => `${upstream} ${model}`}
            columns={[
              { head: "Engine", cell: ({ upstream }) => <EngineLink name={upstream} /> },
              { head: "Name at the engine", cell: ({ model }) => <code>{model}</code> },
              { head: "Priority", isNumber: true, cell: ({ priority }) => priority },
              { head: "Weight", isNumber: true, cell: ({ weight }) => weight },
              {
                head: "All routes of the engine",
                cell: ({ upstream }) =>
                  fleet.answer?.engines
                    .filter((one) => one.upstream === upstream)
                    .map((one) => <RoutesState key={one.replica ?? ""} of={one} drain={undefined} />),
              },
            ]}
          />
        )}
      </Show>
    </Section>
  );
}
