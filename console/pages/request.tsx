/** One request: its course as a line, its receipt, and why it was refused. */
import { useState } from "preact/hooks";
import type { Answer } from "../core/client.ts";
import { limitWords } from "../core/form.ts";
import { grouped, milliseconds, percent, wordsOf } from "../core/format.ts";
import { exactly, figureOf, moneyInFull, moneyWritten } from "../core/money.ts";
import { session } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { LifeLine } from "../parts/life-line.tsx";
import { AskForMore, type LimitRequest } from "../parts/limit-request-acts.tsx";
import { OrganizationLink, RequestLink, ThingLink } from "../parts/links.tsx";
import { Money } from "../parts/number.tsx";
import { Facts, Page, Section, State } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { windowKinds } from "../parts/windows.tsx";

type Request = Answer<"findRequest">;

export function RequestPage({ id }: PageProps) {
  const asked = useAnswer("findRequest", { id });
  return (
    <Page
      title="Request"
      aside={
        <>
          <code>{id}</code>
          {asked.answer && <State of={asked.answer.outcome} />}
        </>
      }
    >
      <Show of={asked}>{(request) => <RequestView request={request} />}</Show>
      <CommandLine verb="findRequest" input={{ id }} />
    </Page>
  );
}

function RequestView({ request }: { request: Request }) {
  return (
    <>
      {request.error_code && <Why request={request} />}
      <LifeLine request={request} />
      {request.refusal && <Refusal request={request} />}
      {request.error_code && request.route && request.route.tried.length > 0 && (
        <Attempts tried={request.route.tried} />
      )}
      <Section title="Details">
        <Facts of={factsOf(request)} />
      </Section>
      {request.prices && <Receipt request={request} prices={request.prices} />}
      {request.windows && <WindowsOf windows={request.windows} />}
    </>
  );
}

function Why({ request: { outcome, error_code } }: { request: Request }) {
  return (
    <p class="why">
      {outcome === "refused" ? "Refused" : "Ended"}: <strong>{wordsOf(error_code!)}</strong>{" "}
      <span class="fine">(docs/errors.md explains the code {error_code})</span>
    </p>
  );
}

/** The message that the client got, and the limit that refused the request, with its values at the time. */
function Refusal({ request: { id, person_id, limited_by, limited_models, refusal } }: { request: Request }) {
  const [asked, setAsked] = useState<LimitRequest | null>(null);
  const { message, limit } = refusal!;
  // A limit of extra usage cannot be raised temporarily.
  const canAsk = limit?.name !== "extra" && person_id !== null && person_id === session.value?.id && asked === null;
  return (
    <Section title="What the client read">
      <p>{message}</p>
      {limit && canAsk && <AskForMore request={id} done={setAsked} />}
      {asked && (
        <p>
          You asked for more: <a href={`/limit-requests/${asked.id}`}>see what becomes of it</a>.
        </p>
      )}
      {limit && (
        <Facts
          of={[
            ["limit of the", `${limited_by}${limited_models ? `, for ${limited_models}` : ""}`],
            ["limit", wordsOf(limit.name)],
            ["allowed", <Amount key="v" of={limit.value} />],
            ["used then", limit.used === null ? null : <Amount key="u" of={limit.used} />],
            ["held then", limit.held === null ? null : <Amount key="h" of={limit.held} />],
            ["the request needed", <Amount key="n" of={limit.needed} />],
            ["resets", limit.reset_at && <Time key="r" at={limit.reset_at} />],
          ]}
        />
      )}
    </Section>
  );
}

type Limit = NonNullable<NonNullable<Request["refusal"]>["limit"]>;

/** An amount of money for a window's limit; a plain number for a limit on requests or tokens. */
const Amount = ({ of }: { of: Limit["value"] }) => (typeof of === "number" ? grouped(of) : <Money of={of} />);

type Tried = NonNullable<Request["route"]>["tried"];

/** The attempts of a request that failed: the outcome, the status and the message of each engine. */
function Attempts({ tried }: { tried: Tried }) {
  return (
    <Section title="What the engines answered">
      <Table
        caption="Attempts"
        rows={tried.map((one, at) => ({ ...one, at }))}
        keyOf={({ at }) => String(at)}
        columns={[
          { head: "Engine", cell: ({ upstream, replica }) => (replica ? `${upstream} ${replica}` : upstream) },
          { head: "Outcome", cell: ({ outcome }) => wordsOf(outcome) },
          { head: "Status", isNumber: true, cell: ({ status }) => status ?? "–" },
          { head: "After", isNumber: true, cell: ({ ms }) => milliseconds(ms) },
          { head: "Its message", cell: ({ said }) => said ?? "–" },
        ]}
      />
    </Section>
  );
}

const firstToken_words = (ms: number | null) => (ms === null ? null : `${milliseconds(ms)} after admission`);

function factsOf(request: Request) {
  const { organization, key_id, key, person_id, person, model, operation, stream, route, billing_source, replay_of } =
    request;
  const notes = (["continued", "recovered", "detached"] as const).filter((name) => request[name]);
  return [
    ["organization", <OrganizationLink key="o" slug={organization} />],
    ["key", <ThingLink key="k" kind="key" id={key_id} name={key} />],
    ["person", person_id ? <ThingLink key="p" kind="person" id={person_id} name={person} /> : "service key"],
    ["model", model],
    ["operation", `${operation}${stream ? ", streamed" : ""}`],
    ["inputs", request.input_count === null ? null : grouped(request.input_count)],
    ["admitted", <Time key="c" at={request.created_at} />],
    ["ended", <Time key="e" at={request.ended_at} none="still running" />],
    ["ran", request.duration_ms === null ? null : `${milliseconds(request.duration_ms)} from admission to end`],
    ["first token", firstToken_words(route?.first_part_ms ?? null)],
    ["engine", route?.upstream],
    ["charged to", billing_source],
    ["stopped by", request.stopped_by && wordsOf(request.stopped_by)],
    ["notes", notes.join(", ")],
    ["repeats", replay_of && <RequestLink key="r" id={replay_of} />],
  ] as const;
}

type Prices = NonNullable<Request["prices"]>;

/** Tokens and searches, their prices, and what they cost together. */
function Receipt({ request: { usage, cost }, prices }: { request: Request; prices: Prices }) {
  const lines = [
    { name: "input", tokens: usage.input_tokens, price: prices.input },
    { name: "input from the cache", tokens: usage.cached_input_tokens, price: prices.cached_input },
    { name: "input into the cache", tokens: usage.cache_write_tokens, price: prices.cache_write },
    { name: "output", tokens: usage.output_tokens, price: prices.output },
    { name: "searches", tokens: usage.searches, price: prices.search },
  ].filter(({ tokens, name }) => tokens > 0 || name === "input" || name === "output");
  return (
    <Section title="Receipt" aside={`tokens ${usage.source}, held ${moneyWritten(cost.held)}`}>
      <Table
        caption="Receipt"
        rows={lines}
        keyOf={({ name }) => name}
        columns={[
          { head: "Counted", cell: ({ name }) => name },
          { head: "Number", isNumber: true, cell: ({ tokens }) => grouped(tokens) },
          {
            head: "Price",
            isNumber: true,
            cell: ({ price, name }) =>
              price && (
                <>
                  <Money of={price} /> a {name === "searches" ? "thousand" : "million"}
                </>
              ),
          },
        ]}
      />
      <p class="sum">
        Charged <strong title={exactly(cost.charged)}>{moneyInFull(cost.charged)}</strong>
        {figureOf(cost.uncharged) > 0 && `, and ${moneyInFull(cost.uncharged)} uncharged`}.
      </p>
    </Section>
  );
}

function WindowsOf({ windows }: { windows: NonNullable<Request["windows"]> }) {
  const rows = windowKinds.flatMap((kind) => {
    const window = windows[kind];
    return window ? [{ kind, ...window }] : [];
  });
  return (
    <Section title="Usage and limits when it was admitted">
      <Table
        caption="Usage and limits when it was admitted"
        rows={rows}
        keyOf={({ kind }) => kind}
        columns={[
          { head: "Limit of", cell: ({ kind }) => limitWords(kind) },
          { head: "Used before", isNumber: true, cell: ({ used_before }) => <Money of={used_before} /> },
          {
            head: "Used after",
            isNumber: true,
            cell: ({ used_after }) => <Money of={used_after} />,
          },
          { head: "Limit", isNumber: true, cell: ({ limit }) => <Money of={limit} none="none" /> },
          {
            head: "Share",
            isNumber: true,
            cell: ({ limit, usage_percent_after: share }) => (limit === null || share === null ? "–" : percent(share)),
          },
          { head: "Resets", cell: ({ reset_at }) => <Time at={reset_at} /> },
        ]}
      />
    </Section>
  );
}
