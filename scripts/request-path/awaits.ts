/**
 * Counts the pending awaits in the modules of `src`: a loader plugin wraps each `await`, each `for await` and each
 * `yield*` with a counter. This module must be loaded before any module of `src`.
 */
import { parse } from "acorn";
import { full } from "acorn-walk";
import { plugin } from "bun";

let pending = 0;
export const pendingAwaits = () => pending;

async function counted<Value>(value: PromiseLike<Value>): Promise<Value> {
  pending += 1;
  try {
    return await value;
  } finally {
    pending -= 1;
  }
}

function awaited(value: unknown): unknown {
  const isPromise = typeof (value as PromiseLike<unknown> | null)?.then === "function";
  return isPromise ? counted(value as PromiseLike<unknown>) : value;
}

/**
 * Wraps an async iterable so that each `next` is counted while it is pending. Returns a synchronous iterable unchanged.
 */
function each(iterable: AsyncIterable<unknown> | Iterable<unknown>): unknown {
  if (!(Symbol.asyncIterator in iterable)) return iterable;
  const inner = iterable[Symbol.asyncIterator]();
  const outer = {
    [Symbol.asyncIterator]: () => outer,
    next: (...given: [] | [unknown]) => counted(inner.next(...given)),
    return: async (value: unknown) => (inner.return ? inner.return(value) : { done: true as const, value }),
    throw: (cause: unknown) => (inner.throw ? inner.throw(cause) : Promise.reject(cause)),
  };
  return outer;
}

Object.assign(globalThis, { countedAwait: awaited, countedEach: each });

const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

/** The code of a module with a counter around each of its awaits. */
function withCounters(source: string): string {
  const code = transpiler.transformSync(source);
  const inserts: { at: number; text: string }[] = [];
  const around = ({ start, end }: { start: number; end: number }, name: string) =>
    inserts.push({ at: start, text: `${name}(` }, { at: end, text: ")" });
  full(parse(code, { ecmaVersion: "latest", sourceType: "module" }), (node) => {
    const one = node as unknown as { type: string; await?: boolean; delegate?: boolean } & Record<string, never>;
    if (one.type === "AwaitExpression") around(one.argument!, "countedAwait");
    if (one.type === "ForOfStatement" && one.await) around(one.right!, "countedEach");
    if (one.type === "YieldExpression" && one.delegate) around(one.argument!, "countedEach");
  });
  // Inserts from the end of the code, so that earlier offsets stay valid. Of nested awaits at the same offset, the
  // outer one is opened first.
  let result = code;
  for (const { at, text } of inserts.sort((a, b) => b.at - a.at || (a.text === ")" ? 1 : -1)))
    result = result.slice(0, at) + text + result.slice(at);
  return result;
}

plugin({
  name: "counted awaits",
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => ({
      contents: withCounters(await Bun.file(path).text()),
      loader: "js",
    }));
  },
});
