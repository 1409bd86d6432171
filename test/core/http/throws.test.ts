/**
 * Whatever throws on a request's way, its grant is settled: the request is sent once for every function that it calls, and
 * that call throws. Then its organization holds nothing, and what was granted has one record.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { admission } from "../../../src/core/admission/admission.ts";
import { unreadBodies, unreadLimits } from "../../../src/core/body/unread.ts";
import { lifecycle } from "../../../src/core/http/lifecycle.ts";
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
import type { CatalogModel } from "../../../src/core/routing/catalog.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { defaultTimeouts } from "../../../src/core/upstream/target.ts";
import { Attempts } from "../../../src/core/usage/attempts.ts";
import { inputEstimate } from "../../../src/core/usage/input-estimate.ts";
import { outputCalibration } from "../../../src/core/usage/output-calibration.ts";
import { runs } from "../../../src/core/usage/run.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { plentifulBounds } from "../../harness/bounds.ts";
import { attemptsParts } from "../../harness/patience.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { until } from "../../harness/until.ts";
import { newHex, stores } from "../store/ledger-stores.ts";

const modelId = "acme/writer-1";
const plan = { ...noLimits, name: "metered", session: 1e12, week: 1e12, month: 1e12, concurrentRequests: 100 };

const store = await stores.postgres();
const organizationId = await store.newOrganization();
const engine = await startSimulator({ models: ["writer"] });

afterAll(async () => {
  await engine.stop();
  await store.close();
});

/** Counts the calls of all functions that are reached from what it wraps, and throws at one of them. */
class Saboteur {
  calls = 0;
  /** Null: what is called is counted, and nothing throws. */
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
        // Whoever cannot reach the ledger cannot settle: that is recovery's affair, and other tests'.
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

/** Objects of functions; not what the language itself made, nor plain values that are compared and copied. */
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
  const model: CatalogModel = {
    ...{ id: modelId, ownedBy: "acme", created: 1, contextTokens: 100_000, outputTokens_max: 10_000 },
    capabilities: new Set(["tools", "reasoning"]),
    prices: { input: 1, cachedInput: 1, cacheWrite: 1, output: 4 },
    extraParams: [],
    routes: [
      {
        upstream: { name: "main", url: engine.url, protocol: "openai-chat", apiKey: null, timeouts: defaultTimeouts },
        ...{ model: "writer", priority: 0, weight: 1 },
      },
    ],
  };
  const granted: string[] = [];
  const admitting = admission({
    ledger: ledger(store.db, { recovery: "checkpoint" }),
    // So long a lease and so rare checkpoints that nothing but a settlement ends a hold.
    metering: { lease_s: 600, checkpoint_s: 600, sweep_s: 600 },
    grant_ms: () => 3_000,
  });
  const estimate = inputEstimate();
  const dependencies: Dependencies = {
    catalog: () => ({ models: new Map([[modelId, model]]), plans: new Map([[plan.name, plan]]) }),
    authenticate: async () => principal() as never,
    pricing: () => null,
    standings: { begin: (principal) => ({ principal, [Symbol.dispose]() {} }) },
    runs: runs(
      saboteur.wrap({
        admission: {
          enter: async (entry) => {
            const reservation = await admitting.enter(entry);
            granted.push(entry.requestId);
            return reservation;
          },
        },
        inputEstimate: estimate,
        tokenizing: () => null,
        outputCalibration: outputCalibration(),
        watcher: { granted() {}, ended() {} },
        open: (attemptRequest) =>
          new Attempts(attemptsParts({ settings: () => ({ unstreamed_tokens_max: 0 }) }), attemptRequest),
      } as Parameters<typeof runs>[0]),
    ),
    ledger: {
      windows: () => Promise.reject(new Error("not asked")),
      budgets: async () => [],
      receipt: async () => null,
    },
    rates: { read: () => Promise.reject(new Error("not asked")) },
    refused: { add() {}, find: async () => null },
    inputEstimate: estimate,
    responses: {
      store: {
        keep: async () => true,
        conversation: async () => "not_found",
        turns: async () => [],
      } as never,
      settings: () => ({ store: true, organization_bytes_max: 1e9 }),
    },
    kept: {} as never,
    arrivals: { take() {} },
    tokenCounter: { examine: () => Promise.reject(new Error("not asked")) },
    messages: () => ({ keep_billing_line: false }) as never,
    limits: {
      ...{
        body_bytes_max: 1e7,
        body_depth_max: 100,
        body_values_max: 100_000,
        body_members_max: 60_000,
        body_names_max: 60_000,
        body_ratio_max: 100,
        body_read_ms: 5_000,
      },
      ...{ first_event_hold_ms: 5_000, heartbeat_ms: 5_000, idle_ms: 60_000 },
    },
    bounds: plentifulBounds(),
    unread: unreadBodies(unreadLimits(1e7)),
    readiness: () => [],
    routes: async () => [],
    letsGo: () => false,
    images: () => ({ deny_private: false, denied_hosts: [] }),
    configurationHash: () => "",
    documentation: {} as never,
    lifecycle: lifecycle(),
    traces: null,
    metrics: { decision() {}, request() {}, inference() {} } as never,
    log: { request() {}, event() {}, flush() {} },
    newId: newHex,
  };
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
    granted,
    holds: () => admitting.holds() + admitting.waitingSettlements(),
    async stop() {
      await listening.stop();
      await admitting.stop();
    },
  };
}

function principal() {
  const key = { id: "key_00000000000070008000000000000001", scopes: ["inference:create"], allowedModels: null };
  return { key, organization: { id: organizationId, plan: plan.name } };
}

const messages = [{ role: "user", content: "three words please" }];
const bodies: Record<string, object> = {
  chat: { model: modelId, messages, max_tokens: 4 },
  messages: { model: modelId, messages, max_tokens: 4 },
  responses: { model: modelId, input: "three words please", max_output_tokens: 16 },
};

describe.each(Object.keys(bodies))("a request of %s whose handling throws", (protocol) => {
  test.each([false, true])(
    "at any step has one record and holds nothing (streamed: %p)",
    async (stream) => {
      const saboteur = new Saboteur();
      const bench = serve(saboteur);
      const body = JSON.stringify({ ...bodies[protocol], stream });
      let settledAfterThrow = 0;
      try {
        for (let step = 1; ; step++) {
          saboteur.begin(step);
          const before = bench.granted.length;
          const response = await fetch(`${bench.url}/${protocol}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body,
          });
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
    60_000,
  );
});

async function recordsOf(requestIds: readonly string[]): Promise<number> {
  if (requestIds.length === 0) return 0;
  const uuids = requestIds.map((id) => uuidOf(id, "req_"));
  const [found] = await store.db.query<{ count: string }>(
    `select count(*) from usage_record where request_id in (${uuids.map((_, index) => `$${index + 1}`).join(", ")})`,
    uuids,
  );
  return Number(found?.count);
}
