/** Searches the interface, a moment after the reader stopped typing. */
import { useEffect, useState } from "preact/hooks";
import type { Answer, Input } from "./client.ts";
import { useAnswer } from "./use-answer.ts";

const pause_ms = 120;

export type Found = Answer<"search">["data"][number];

interface Searched {
  found: readonly Found[];
  /** Whether the results are those for the current text. */
  isCurrent: boolean;
}

export function useSearch(text: string, more: Omit<Input<"search">, "text"> = {}): Searched {
  const [asked, setAsked] = useState("");
  const wanted = text.trim();
  useEffect(() => {
    const timer = setTimeout(() => setAsked(wanted), pause_ms);
    return () => clearTimeout(timer);
  }, [wanted]);
  const { answer, isLoading } = useAnswer("search", asked === "" ? null : { text: asked, ...more });
  if (wanted === "") return { found: [], isCurrent: true };
  return { found: answer?.data ?? [], isCurrent: asked === wanted && !isLoading };
}
