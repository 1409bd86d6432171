/**
 * A list that is loaded in parts. The address keeps the cursor, so the browser's Back button returns to the previous
 * part. The list loads again after something in it was created or changed on the same page.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { query, withQuery } from "../core/address.ts";
import { type Answer, entryOf, type Input, lastChange, type VerbName } from "../core/client.ts";
import { rowsAtFirst } from "../core/narrow.ts";
import { type Asked, useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { Empty } from "./section.tsx";

interface Listed<Name extends VerbName, Row> {
  verb: Name;
  input: Input<Name>;
  none: ComponentChildren;
  /** The name of the cursor in the address, where a page has several lists. */
  cursor?: string | undefined;
  /** The most rows, if only the first ones are shown. */
  limit?: number | undefined;
  /** Shows the rows. Call `reload` after a change whose path is not below that of the verb. */
  children: (rows: Row[], reload: () => void) => ComponentChildren;
}

/** How many empty parts are skipped before the reader is asked whether to go on. */
const empty_max = 25;

/**
 * Asks for a part of a list, and skips empty ones: each part reads a limited number of rows, of which a filter may
 * leave none though older rows match.
 */
function usePart<Name extends VerbName>(
  verb: Name,
  input: Input<Name>,
): Asked<Answer<Name>> & { isPassedOver: boolean } {
  const written = JSON.stringify([verb, input]);
  const [passed, setPassed] = useState({ of: written, cursor: null as string | null, count: 0 });
  const { cursor, count } = passed.of === written ? passed : { cursor: null, count: 0 };
  const asked = useAnswer(verb, cursor === null ? input : { ...input, cursor });
  const { data = [], next_cursor: next = null } = (asked.answer ?? {}) as { data?: unknown[]; next_cursor?: string };
  const isPassedOver = data.length === 0 && next !== null && count < empty_max;
  useEffect(() => {
    if (isPassedOver) setPassed({ of: written, cursor: next, count: count + 1 });
  }, [asked.answer]);
  return { ...asked, isPassedOver };
}

/** Loads the list again after a change in it: for the list of keys, a change at `/keys` or below it. */
function useChanges(verb: VerbName, reload: () => void): void {
  const last = lastChange.value;
  const seen = useRef(last);
  useEffect(() => {
    if (last === seen.current) return;
    seen.current = last;
    const { path } = entryOf(verb)!;
    if (last && `${last.path}/`.startsWith(`${path}/`)) reload();
  }, [last]);
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
  const asked = usePart(verb, { ...input, limit: size, ...(after ? { cursor: after } : {}) } as Input<Name>);
  useChanges(verb, asked.reload);
  return (
    <Show of={asked}>
      {(answer) => {
        const { data, next_cursor } = answer as unknown as { data: RowOf<Name>[]; next_cursor: string | null };
        if (asked.isPassedOver) return <p class="waiting">Looking further back…</p>;
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
