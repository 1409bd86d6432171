/** The nodes: versions, configurations and states. */

import type { ItemOf } from "../core/client.ts";
import { grouped, milliseconds, rate, span } from "../core/format.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Badge, Page, State } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Distance, Time } from "../parts/time.tsx";

type Node = ItemOf<"listNodes">;

export function NodesPage() {
  const asked = useAnswer("listNodes", {});
  return (
    <Page
      title="Nodes"
      aside={
        <>
          <span>
            as of <Time at={asked.at} />
          </span>
          <button type="button" class="small" onClick={asked.reload}>
            Refresh
          </button>
        </>
      }
    >
      <Show of={asked}>{({ data }) => <NodeTable of={data} />}</Show>
      <CommandLine verb="listNodes" />
    </Page>
  );
}

function NodeTable({ of }: { of: readonly Node[] }) {
  const sum = (value: (node: Node) => number) => of.reduce((total, node) => total + value(node), 0);
  return (
    <Table<Node>
      caption="Nodes"
      rows={of}
      keyOf={({ id }) => id}
      columns={[
        { head: "Node", cell: ({ name }) => name, foot: "Sum" },
        { head: "State", cell: (node) => <NodeState of={node} /> },
        { head: "Version", cell: ({ version }) => version },
        {
          head: "Configuration",
          cell: ({ configuration, configuration_differs }) => (
            <span class="badges">
              <code>{configuration.slice(0, 12)}</code>{" "}
              {configuration_differs && <Badge tone="warn">differs from most</Badge>}
            </span>
          ),
        },
        { head: "Started", cell: ({ started_at }) => <Distance at={started_at} /> },
        ...(of.some(({ certificate_expires_at }) => certificate_expires_at !== null)
          ? [
              {
                head: "Certificate ends",
                cell: ({ certificate_expires_at }: Node) => <Distance at={certificate_expires_at} />,
              },
            ]
          : []),
        { head: "Workers", isNumber: true, cell: ({ workers, workers_wanted }) => `${workers} of ${workers_wanted}` },
        {
          head: "Running",
          isNumber: true,
          cell: ({ running }) => grouped(running),
          foot: grouped(sum(({ running }) => running)),
        },
        {
          head: "Tokens/s in",
          isNumber: true,
          cell: (node) => rate(node.input_tokens_per_second),
          foot: rate(sum((node) => node.input_tokens_per_second)),
        },
        {
          head: "Tokens/s out",
          isNumber: true,
          cell: (node) => rate(node.output_tokens_per_second),
          foot: rate(sum((node) => node.output_tokens_per_second)),
        },
        { head: "First token", isNumber: true, cell: ({ first_part_p50_ms }) => milliseconds(first_part_p50_ms) },
      ]}
    />
  );
}

function NodeState({ of: { state, problems, silent_ms } }: { of: Node }) {
  return (
    <>
      <State of={state} /> {state === "silent" && <span class="fine">for {span(silent_ms)}</span>}
      {problems.map((problem) => (
        <p key={problem} class="fine">
          {problem}
        </p>
      ))}
    </>
  );
}
