/** A list by parts: the cursor stands in the address, and the way back is the browser's own. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { query, withQuery } from "../core/address.ts";
import type { Answer, Input, VerbName } from "../core/client.ts";
import { rowsAtFirst } from "../core/narrow.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { Empty } from "./section.tsx";

interface Listed<Name extends VerbName, Row> {
  verb: Name;
  input: Input<Name>;
  none: ComponentChildren;
  /** The name of the cursor in the address, where a page has several lists. */
  cursor?: string;
  /** How many at most, where only the first ones are shown. */
  limit?: number;
  children: (rows: Row[], reload: () => void) => ComponentChildren;
}

type RowOf<Name extends VerbName> = Answer<Name> extends { data: (infer Row)[] } ? Row : never;

export function List<Name extends VerbName>({
  verb,
  input,
  none,
  cursor = "cursor",
  limit,
  children,
}: Listed<Name, RowOf<Name>>) {
  const after = limit === undefined ? query.value.get(cursor) : null;
  const [size] = useState(() => limit ?? rowsAtFirst());
  const asked = useAnswer(verb, { ...input, limit: size, ...(after ? { cursor: after } : {}) } as Input<Name>);
  return (
    <Show of={asked}>
      {(answer) => {
        const { data, next_cursor } = answer as unknown as { data: RowOf<Name>[]; next_cursor: string | null };
        return (
          <>
            {data.length > 0 ? (
              children(data, asked.reload)
            ) : (
              <Empty>
                {next_cursor === null ? none : "None among those that this part looked at. More may follow."}
              </Empty>
            )}
            {limit === undefined && <Pages cursor={cursor} isLater={after !== null} next={next_cursor} size={size} />}
          </>
        );
      }}
    </Show>
  );
}

interface PagesProps {
  cursor: string;
  isLater: boolean;
  next: string | null;
  size: number;
}

function Pages({ cursor, isLater, next, size }: PagesProps) {
  if (!isLater && next === null) return null;
  return (
    <nav class="pages" aria-label="Parts of the list">
      {isLater && <a href={withQuery({ [cursor]: null })}>First</a>}
      {next !== null && (
        <a href={withQuery({ [cursor]: next })} rel="next">
          Next {size}
        </a>
      )}
    </nav>
  );
}
