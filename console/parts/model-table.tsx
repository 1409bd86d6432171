/** The models that are served: what each is for, how much fits into it, and what its requests cost. */
import type { ItemOf } from "../core/client.ts";
import { compacted, grouped, wordsOf } from "../core/format.ts";
import { figureOf, nanosOf, priceWritten } from "../core/money.ts";
import { Table } from "./table.tsx";

export type Model = ItemOf<"listModels">;

/** Whether a model generates text; only such a model has a price for output tokens. */
export const makesText = ({ kind }: Pick<Model, "kind">) => kind === "chat" || kind === "completion";

export function ModelTable({ models }: { models: readonly Model[] }) {
  const hasSearch = models.some(({ prices }) => prices.search && nanosOf(prices.search) > 0n);
  return (
    <Table<Model>
      caption="Models"
      isDense
      rows={models}
      keyOf={({ id }) => id}
      columns={[
        { head: "Model", cell: ({ id }) => <ModelLink id={id} />, order: ({ id }) => id },
        { head: "Kind", isMinor: true, cell: ({ kind }) => kind, order: ({ kind }) => kind },
        {
          head: "Context",
          isNumber: true,
          cell: ({ context_tokens: tokens }) => <span title={`${grouped(tokens)} tokens`}>{compacted(tokens)}</span>,
          order: ({ context_tokens }) => context_tokens,
        },
        {
          head: "Input",
          isNumber: true,
          cell: ({ prices }) => priceWritten(prices.input),
          order: ({ prices }) => figureOf(prices.input),
        },
        { head: "Cached input", isNumber: true, cell: ({ prices }) => priceWritten(prices.cached_input) },
        {
          head: "Output",
          isNumber: true,
          cell: (model) => (makesText(model) ? priceWritten(model.prices.output) : "–"),
          order: ({ prices }) => figureOf(prices.output),
        },
        hasSearch && {
          head: "1,000 searches",
          isNumber: true,
          cell: ({ prices }) => (prices.search ? priceWritten(prices.search) : "–"),
        },
        { head: "Capabilities", isMinor: true, cell: ({ capabilities }) => capabilities.map(wordsOf).join(", ") },
      ]}
    />
  );
}

export function ModelLink({ id }: { id: string }) {
  return (
    <a href={`/models/${id.split("/").map(encodeURIComponent).join("/")}`}>
      <code>{id}</code>
    </a>
  );
}
