/**
 * Whichever function throws while a request is served, the request's grant is settled. The request is repeated, and
 * each time another of the function calls on its way throws. Afterwards its organization has no hold, and each grant
 * has one record.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { Elysia } from "elysia";
import { listen } from "../../../src/core/http/listen.ts";
import type { Adapter, InferenceWire } from "../../../src/core/operations/adapter.ts";
import { chatAdapter, createChatCompletion } from "../../../src/core/operations/chat.ts";
import type { Dependencies } from "../../../src/core/operations/dependencies.ts";
import { infer } from "../../../src/core/operations/infer.ts";
import { createMessage, messagesAdapter } from "../../../src/core/operations/messages.ts";
import type { Operation } from "../../../src/core/operations/operation.ts";
import type { InferenceInput } from "../../../src/core/operations/prepare.ts";
import { createResponse, responsesAdapter } from "../../../src/core/operations/responses.ts";
import { serveOperation } from "../../../src/core/operations/serve-operation.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import { storedResponses } from "../../../src/features/responses/records.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { until } from "../../harness/until.ts";
import { coreNode, modelId } from "../core-node.ts";
import { stores } from "../store/ledger-stores.ts";

setDefaultTimeout(60_000);

const store = await stores.postgres();
const organizationId = await store.newOrganization();
const engine = await startSimulator({ models: ["writer"] });

afterAll(async () => {
  await engine.stop();
  await store.close();
});

/** Counts the calls of all functions that are reachable from the wrapped value, and throws at one of them. */
class Saboteur {
  calls = 0;
  /** The number of the call that throws. Null: calls are counted, and nothing throws. */
  at: number | null = null;
  #wrapped = new WeakMap<object, object>();

  begin(at: number): void {
    this.calls = 0;
    this.at = at;
  }

  get hasStruck(): boolean {
    return this.at !== null && this.calls >= this.at;
  }

  wrap<T extends object>(target: T): T {
    const known = this.#wrapped.get(target);
    if (known) return known as T;
    const made = new Proxy(target, {
      get: (object, name) => {
        const value = Reflect.get(object, name, object) as unknown;
        // If the ledger cannot be reached, nothing can be settled: recovery handles that, and other tests cover it.
        if (name === "settle") return value;
        if (typeof value === "function") return this.#sabotaged(value.bind(object));
        return typeof value === "object" && value !== null && isOurs(value) ? this.wrap(value) : value;
      },
    });
    this.#wrapped.set(target, made);
    return made as T;
  }

  #sabotaged(work: (...values: unknown[]) => unknown) {
    return (...values: unknown[]) => {
      this.calls += 1;
      if (this.calls === this.at) throw new Error("sabotage");
      const result = work(...values);
      return result instanceof Promise ? result.then(this.#returned) : this.#returned(result);
    };
  }

  readonly #returned = (result: unknown) =>
    typeof result === "object" && result !== null && isOurs(result) ? this.wrap(result) : result;
}

/**
 * Whether a value is one of the service's own objects with methods: neither a built-in object of the language, nor
 * plain data that is compared and copied.
 */
function isOurs(value: object): boolean {
  if (value instanceof Promise || Symbol.asyncIterator in value || value instanceof Map || value instanceof Set)
    return false;
  const prototype = Object.getPrototypeOf(value);
  return (
    prototype === Object.prototype && Object.values(value).some((one) => typeof one === "function" || isParts(one))
  );
}

function isParts(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.values(value).some((one) => typeof one === "function");
}

interface Bench {
  url: string;
  granted: string[];
  holds(): number;
  stop(): Promise<void>;
}

function serve(saboteur: Saboteur): Bench {
  const node = coreNode({ store, organizationId, engineUrl: engine.url, wrap: (value) => saboteur.wrap(value) });
  const stored = storedResponses({
    ...node.dependencies,
    responses: {
      store: {
        keep: async () => true,
        conversation: async () => "not_found",
        turns: async () => [],
      } as never,
      settings: () => ({ store: true, organization_bytes_max: 1e9 }),
    },
  });
  const dependencies: Dependencies = { ...node.dependencies, stored };
  const sabotaged = saboteur.wrap(dependencies);
  const elysia = new Elysia();
  const mount = <Wire extends InferenceWire, Reply>(
    path: string,
    operation: Operation,
    adapter: Adapter<Wire, Reply>,
  ) => {
    const answer = serveOperation(dependencies, {
      ...operation,
      path,
      handle: (_, call, input) =>
        infer(sabotaged, call, input as unknown as InferenceInput<Wire>, saboteur.wrap(adapter)),
    });
    elysia.all(
      path,
      ({ request, server }) =>
        answer(request, {
          address: () => "127.0.0.1",
          isLocal: () => true,
          keepOpen: (isKept) => server?.timeout(request, isKept ? 0 : 60),
        }),
      { parse: "none" },
    );
  };
  mount("/chat", createChatCompletion, chatAdapter);
  mount("/messages", createMessage, messagesAdapter(dependencies));
  mount("/responses", createResponse, responsesAdapter(sabotaged));
  const listening = listen(elysia as never, { host: "127.0.0.1", port: 0, idle_ms: 60_000 });
  return {
    url: listening.url,
    granted: node.granted,
    holds: node.holds,
    async stop() {
      await listening.stop();
      await node.stop();
    },
  };
}

const messages = [{ role: "user", content: "three words please" }];
const bodies: Record<string, object> = {
  chat: { model: modelId, messages, max_tokens: 4 },
  messages: { model: modelId, messages, max_tokens: 4 },
  responses: { model: modelId, input: "three words please", max_output_tokens: 16 },
};

const requests = Object.keys(bodies).flatMap((protocol) => [false, true].map((stream) => [protocol, stream] as const));
test.each(requests)(
  "a %s request (streamed: %p) that throws at any step has one record and holds nothing",
  async (protocol, stream) => {
    const saboteur = new Saboteur();
    const bench = serve(saboteur);
    const body = JSON.stringify({ ...bodies[protocol], stream });
    let settledAfterThrow = 0;
    try {
      for (let step = 1; ; step++) {
        saboteur.begin(step);
        const before = bench.granted.length;
        const headers = { "content-type": "application/json" };
        const response = await fetch(`${bench.url}/${protocol}`, { method: "POST", headers, body });
        await response.text().catch(() => {});
        await until(() => bench.holds() === 0, 5_000, `the request that threw at step ${step} to be settled`);
        const ids = bench.granted.slice(before);
        expect(await recordsOf(ids)).toBe(ids.length);
        if (!saboteur.hasStruck) break;
        if (ids.length > 0) settledAfterThrow += 1;
      }
    } finally {
      await bench.stop();
    }
    expect(settledAfterThrow).toBeGreaterThan(5);
    const [held] = await store.db.query<{ count: string }>("select count(*) from usage_hold");
    expect(Number(held?.count)).toBe(0);
  },
);

async function recordsOf(requestIds: readonly string[]): Promise<number> {
  if (requestIds.length === 0) return 0;
  const uuids = requestIds.map((id) => uuidOf(id, "req_"));
  const [found] = await store.db.query<{ count: string }>(
    `select count(*) from usage_record where request_id in (${uuids.map((_, index) => `$${index + 1}`).join(", ")})`,
    uuids,
  );
  return Number(found?.count);
}
