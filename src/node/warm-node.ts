/**
 * A node for warming up (docs/design/runtime.md, Warming up): the same code as the serving node's, from HTTP to
 * admission, codecs and the client of engines, with an engine and a client within this process. It uses no database and
 * no Redis. It has its own instances of everything that remembers, counts or reports, so that nothing outside is
 * affected. All else is like the serving node's, down to the shapes of objects, for which the compiler optimizes.
 */

import type { Configuration } from "../config/configuration.ts";
import { admission } from "../core/admission/admission.ts";
import { arrivals } from "../core/admission/arrivals.ts";
import { authenticator } from "../core/auth/authenticate.ts";
import { key_random_bytes, newKey } from "../core/auth/credential.ts";
import { standings } from "../core/auth/standing.ts";
import { unreadBodies, unreadLimits } from "../core/body/unread.ts";
import { lifecycle } from "../core/http/frame.ts";
import { listen } from "../core/http/listen.ts";
import { noSinks } from "../core/operations/answer.ts";
import type { Dependencies } from "../core/operations/dependencies.ts";
import { nothingStored } from "../core/operations/stored.ts";
import type { Catalog } from "../core/routing/catalog.ts";
import { noLimits, type Plan } from "../core/store/plan.ts";
import { Cancellation, type Signal } from "../core/time/cancellation.ts";
import { systemClock } from "../core/time/clock.ts";
import { readAtMost } from "../core/upstream/body.ts";
import { client } from "../core/upstream/http1/client.ts";
import { defaultTimeouts, type Upstream } from "../core/upstream/target.ts";
import { inputEstimate } from "../core/usage/input-estimate.ts";
import { outputCalibration } from "../core/usage/output-calibration.ts";
import { logTo } from "../features/telemetry/log.ts";
import { prometheusMetrics } from "../features/telemetry/metrics.ts";
import type { CountingWorkers } from "../features/tokenizers/counter.ts";
import { memoryRates } from "../stores/memory/rates.ts";
import { mount, type NodeDependencies } from "./app.ts";
import { engines } from "./engines.ts";
import { inferenceRuns } from "./inference-runs.ts";
import { operations } from "./operations.ts";
import { type Ask, asksOf, startEngine } from "./warm-asks.ts";
import { callerOn, grantAll } from "./warm-store.ts";

export interface WarmNode extends AsyncDisposable {
  /**
   * Sends the node the requests of a round. Resolves when all are settled, with the number of those that were answered.
   */
  serve(round: Round): Promise<number>;
}

export interface Round {
  requests: number;
  concurrent: number;
  /** Called before each request. Returns whether to send it. */
  goesOn(): boolean;
  signal: AbortSignal;
}

interface WarmParts {
  configuration: Configuration;
  /** The dependencies of the serving node, which the warm node's resemble. */
  like: NodeDependencies;
  bounds: Dependencies["bounds"];
  counter: Pick<CountingWorkers, "examine">;
}

/**
 * The dependencies that are taken from the serving node, because they have no effects and are the same for all callers.
 */
type Shared =
  | (
      | "messages"
      | "images"
      | "limits"
      | "newId"
      | "configurationHash"
      | "documentation"
      | "tokenCounter"
      | "fitted"
      | "codexModels"
    )
  | ("kept" | "responses")
  | ("readiness" | "routes" | "shedsConnection");

const answer_bytes_max = 1024 * 1024;

export function startWarmNode({ configuration, like, bounds, counter }: WarmParts): WarmNode {
  const ending = new AsyncDisposableStack();
  const engine = startEngine();
  ending.defer(engine.stop);
  const catalog = catalogAt(engine.url, like.catalog());
  const credential = callerOn([...catalog.plans.keys()][0]!);
  const key = newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes)));
  const rates = memoryRates(() => performance.now());
  const authentication = authenticator({
    directory: { credential: async () => credential, touch: async () => {} },
    now_ms: () => performance.now(),
  });
  ending.defer(() => authentication.stop());
  const standing = standings({ authenticator: authentication, ends: configuration.metering.end_revoked });
  ending.defer(() => standing.stop());
  const metrics = prometheusMetrics({ version: "", isPrivate: true, organizations_max: () => 0 });
  const log = logTo({ write() {}, clock: systemClock(), settings: () => configuration.log });
  ending.defer(() => log.flush());
  // The list of upstreams is empty, so that no engine is checked at intervals. The warm-up's engine exists only in the
  // catalog.
  const atWarmEngine = { ...configuration, catalog, upstreams: [] };
  const warmEngines = ending.use(engines({ configuration: () => atWarmEngine, log }));
  const learned = { inputEstimate: inputEstimate(), outputCalibration: outputCalibration() };
  const life = lifecycle();
  const own: Omit<NodeDependencies, Shared> = {
    catalog: () => catalog,
    currency: "USD",
    consoleUrl: () => null,
    standings: standing,
    authenticate: authentication.authenticate,
    arrivals: arrivals(() => performance.now()),
    runs: { start: unasked },
    ledger: { windows: unasked, budgets: unasked, receipt: unasked },
    rates,
    refused: { add() {}, find: unasked },
    inputEstimate: learned.inputEstimate,
    stored: nothingStored,
    sinks: noSinks,
    bounds,
    unread: unreadBodies(unreadLimits(like.limits.body_bytes_max)),
    lifecycle: life,
    metrics,
    traces: null,
    log,
  };
  const dependencies: NodeDependencies = { ...like, ...own };
  const runsParts = {
    ...learned,
    counter,
    engines: warmEngines,
    metering: () => configuration.metering,
    shares: () => configuration.shares,
    metrics,
    traces: null,
    log,
    unknownModel() {},
  };
  const listening = listen(
    mount(
      dependencies,
      operations.filter(({ metered }) => metered !== undefined),
    ),
    { host: "127.0.0.1", port: 0, idle_ms: like.limits.idle_ms },
  );
  ending.defer(() => listening.breakOff());
  const { port } = new URL(listening.url);
  const asks = asksOf(catalog);
  const http = client();
  ending.defer(() => http.close());
  let sent = 0;

  async function ask(one: Ask, signal: Signal): Promise<boolean> {
    const { path, headers, body } = one;
    const own = { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers };
    const endpoint = http.at(one, () => ({ url: `http://127.0.0.1:${port}${path}`, headers: own, tls: null }));
    const { connect_ms } = defaultTimeouts;
    const reply = await endpoint.post({ headers: {}, body, connect_ms, isFresh: false, connected() {}, signal });
    await readAtMost(reply, answer_bytes_max);
    return reply.status === 200;
  }

  return {
    async serve({ requests, concurrent, goesOn, signal }) {
      const admitting = admission({
        ledger: { run: grantAll, recover: unasked },
        rates,
        metering: configuration.metering,
        grant_ms: () => configuration.limits.grant_ms,
        settled: metrics.settled,
        waited: metrics.grant,
        sent: metrics.batch,
      });
      const work = new Cancellation();
      signal.addEventListener("abort", () => work.abort(signal.reason), { once: true });
      dependencies.runs = inferenceRuns({ ...runsParts, admission: admitting });
      let [left, answered] = [requests, 0];
      const one = async () => {
        while (left-- > 0 && goesOn()) if (await ask(asks[sent++ % asks.length]!, work)) answered += 1;
      };
      try {
        await Promise.all(Array.from({ length: concurrent }, one));
      } finally {
        await admitting.stop(signal.aborted ? 0 : settle_ms);
      }
      return answered;
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  };
}

const settle_ms = 1_000;

/**
 * A catalog with the same models, all served by the engine at `url`, and with the plan that has the most limits. The
 * limits are raised so high that they are never reached.
 */
function catalogAt(url: string, { models, plans }: Catalog): Catalog {
  const moved = ({ resolve: _, ...upstream }: Upstream): Upstream => ({
    ...upstream,
    url,
    apiKey: upstream.apiKey === null ? null : "warm-up",
    ...(upstream.headers ? { headers: {} } : {}),
  });
  const all = [...models.values()].map((model) => ({
    ...model,
    routes: model.routes.map((route) => ({ ...route, upstream: moved(route.upstream) })),
  }));
  const limited = (plan: Plan) => Object.values(plan).filter((limit) => limit !== null).length;
  const [most = noLimits] = [...plans.values()].sort((one, other) => limited(other) - limited(one));
  return { models: new Map(all.map((model) => [model.id, model])), plans: new Map([[most.name, ample(most)]]) };
}

function ample(plan: Plan): Plan {
  const nanos = { session: 1e15, week: 1e15, month: 1e15 };
  return { ...plan, ...nanos, requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrentRequests: 1e6 };
}

async function unasked(): Promise<never> {
  throw new Error("warming up asks for no such thing");
}
