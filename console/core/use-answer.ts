/** The answer of a verb, for as long as the part of the page that needs it is shown. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "./announce.ts";
import { type Answer, call, follow, type Input, type VerbName } from "./client.ts";

export interface Asked<Of> {
  /** The latest answer. It stays while the next call runs, and is cleared if a call with another input fails. */
  answer: Of | null;
  /** The answer to the current input; null until it comes. For parts that show nothing rather than old figures. */
  current: Of | null;
  failure: Error | null;
  isLoading: boolean;
  /** When the answer came. */
  at: Date | null;
  reload: () => void;
}

interface Options {
  /**
   * The priority in the browser's queue. Absent: the normal one, because a page shows little without the answer. A
   * browser has few connections, and sends low-priority requests last.
   */
  priority?: "low";
}

/** Calls a verb, and again when its input changes. A null input calls nothing. */
export function useAnswer<Name extends VerbName>(
  name: Name,
  input: Input<Name> | null,
  { priority }: Options = {},
): Asked<Answer<Name>> {
  const [state, setState] = useState<State<Answer<Name>>>(nothing);
  const [turn, setTurn] = useState(0);
  const written = JSON.stringify([name, input]);
  useEffect(() => {
    if (input === null) return;
    const abort = new AbortController();
    setState((before) => ({ ...before, failure: before.of === written ? before.failure : null, isLoading: true }));
    call(name, input, { signal: abort.signal, priority }).then(
      (answer) =>
        !abort.signal.aborted && setState({ of: written, answer, failure: null, isLoading: false, at: new Date() }),
      (failure) => {
        if (abort.signal.aborted) return;
        announce(failure.message);
        setState((before) => ({
          ...(before.of === written ? before : nothing),
          of: written,
          failure,
          isLoading: false,
        }));
      },
    );
    return () => abort.abort();
  }, [written, turn]);
  const { of, ...asked } = input === null ? nothing : state;
  const isOther = of !== written;
  return {
    ...asked,
    current: isOther ? null : asked.answer,
    isLoading: isOther || asked.isLoading,
    reload: () => setTurn((before) => before + 1),
  };
}

interface State<Of> extends Omit<Asked<Of>, "current" | "reload"> {
  /** The input of the answer or of the failure. */
  of: string;
}

const nothing = { of: "", answer: null, failure: null, isLoading: true, at: null };
const again_ms = 2000;

/**
 * Follows a live verb, whose answers come as a stream of events, while the tab is visible. After a failure or the end
 * of the stream, it connects again.
 */
export function useLive<Name extends VerbName>(name: Name, onAnswer: (answer: Answer<Name>) => void): Error | null {
  const [failure, setFailure] = useState<Error | null>(null);
  const latest = useRef(onAnswer);
  latest.current = onAnswer;
  useEffect(() => {
    let abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = () => {
      if (document.hidden) return;
      abort = new AbortController();
      const { signal } = abort;
      const received = (answer: Answer<Name>) => {
        setFailure(null);
        latest.current(answer);
      };
      follow(name, signal, received)
        .catch((problem) => !signal.aborted && setFailure(problem))
        .finally(() => {
          if (!signal.aborted) timer = setTimeout(begin, again_ms);
        });
    };
    const end = () => {
      clearTimeout(timer);
      abort.abort();
    };
    const turned = () => {
      end();
      begin();
    };
    begin();
    document.addEventListener("visibilitychange", turned);
    return () => {
      document.removeEventListener("visibilitychange", turned);
      end();
    };
  }, [name]);
  return failure;
}
