/**
 * A node for warming up (docs/design/runtime.md, Warming up): the same code as the one that will serve, from HTTP to the
 * batches of the ledger, over an engine and a client within this process. It has its own metrics, log, rates, calibration,
 * health of engines and caller, and nobody hears of it; of main's room.
 */
import { admission } from "./admission/admission.ts";
import { attempts } from "./admission/attempts.ts";
import { authenticator } from "./auth/authenticate.ts";
import { key_random_bytes, newKey } from "./auth/key.ts";
import { standings } from "./auth/standing.ts";
import { closing } from "./closing.ts";
import type { Configuration } from "./config/configuration.ts";
import { capabilities } from "./config/schema.ts";
import { engines } from "./engines.ts";
import { mount } from "./http/app.ts";
import type { Dependencies } from "./http/dependencies.ts";
import { lifecycle } from "./http/lifecycle.ts";
import { listen } from "./http/listen.ts";
import { logTo } from "./http/log.ts";
import { operations } from "./http/operations.ts";
import { unreadBodies, unreadLimits } from "./http/unread.ts";
import { noUsage } from "./inference/usage.ts";
import { inferenceRuns } from "./inference-runs.ts";
import type { CatalogModel } from "./routing/catalog.ts";
import type { Credential } from "./store/directory.ts";
import { scopes } from "./store/directory.ts";
import { idOf } from "./store/ids.ts";
import type { Admit, Command, Ledger } from "./store/ledger.ts";
import type { Plan } from "./store/plan.ts";
import type { Rates } from "./store/rates.ts";
import { prometheusMetrics } from "./telemetry/metrics.ts";
import { systemClock } from "./time/clock.ts";
import { readAtMost } from "./upstream/body.ts";
import type { UpstreamProtocol } from "./upstream/codecs.ts";
import { client } from "./upstream/http1/client.ts";
import { defaultTimeouts, type Upstream } from "./upstream/target.ts";
import { inputEstimate } from "./usage/input-estimate.ts";
import { outputCalibration } from "./usage/output-calibration.ts";
import { type Ask, asksOf, startEngine } from "./warm-asks.ts";

export interface WarmNode extends AsyncDisposable {
  /** To be handed to the ledger's rehearsal. */
  organizationId: string;
  /**
   * So many requests, some at once, with a `run` of a rehearsal; fewer where `goesOn` says so. Resolves when they are
   * settled, with how many were answered.
   */
  serve(run: Ledger["run"], round: Round): Promise<number>;
}

export interface Round {
  requests: number;
  concurrent: number;
  /** Asked before each request. */
  goesOn(): boolean;
  signal: AbortSignal;
}

export interface WarmParts {
  configuration: Configuration;
  limits: Dependencies["limits"];
  bounds: Dependencies["bounds"];
  tokenCounter: Parameters<typeof inferenceRuns>[0]["counter"];
  rates: Rates;
}

const answer_bytes_max = 1024 * 1024;

export function startWarmNode(parts: WarmParts): WarmNode {
  const ending = new AsyncDisposableStack();
  const { configuration, limits, rates } = parts;
  const engine = startEngine();
  ending.defer(engine.stop);
  const upstreams = [...new Set(configuration.upstreams.map(({ protocol }) => protocol))].map((protocol) =>
    upstreamOf(engine.url, protocol),
  );
  const models = upstreams.map(modelAt);
  const within: Configuration = { ...configuration, upstreams };
  const caller = callerOf();
  const authentication = authenticator({
    directory: { credential: async () => caller.credential, touch: async () => {} },
    now_ms: () => performance.now(),
  });
  ending.defer(() => authentication.stop());
  const standing = standings({ authenticator: authentication, ends: within.metering.end_revoked });
  ending.defer(() => standing.stop());
  const metrics = prometheusMetrics({ version: "", isPrivate: true, organizations_max: () => 0 });
  const log = logTo({
    ...{ write() {}, clock: systemClock(), probes: new Set<string>(), hidden: () => [] },
    ...{ level: () => within.log.level, format: () => within.log.format },
  });
  ending.defer(() => log.flush());
  const known = engines({ configuration: () => within, log, resolved: metrics.resolved, ending });
  const learned = { inputEstimate: inputEstimate(), outputCalibration: outputCalibration() };
  const life = lifecycle();
  const told = { metering: () => within.metering, shares: () => within.shares, metrics, traces: null, log };
  /** Of the round that is under way. */
  let runs: Dependencies["runs"] | null = null;
  const dependencies: Dependencies = {
    catalog: () => ({ models: new Map(models.map((model) => [model.id, model])), plans: new Map([[plan.name, plan]]) }),
    standings: standing,
    authenticate: authentication.authenticate,
    attempts: attempts(() => performance.now()),
    runs: { start: (...asked) => runs!.start(...asked) },
    ledger: { windows: unasked, budgets: unasked, receipt: unasked },
    rates,
    refused: { add() {}, find: unasked },
    inputEstimate: learned.inputEstimate,
    responses: { store: nothingKept, settings: () => ({ store: false, organization_bytes_max: 0 }) },
    tokenCounter: parts.tokenCounter,
    messages: () => within.messages,
    images: () => within.images,
    ...{ limits, bounds: parts.bounds, unread: unreadBodies(unreadLimits(limits.body_bytes_max)) },
    readiness: () => [],
    routes: async () => [],
    letsGo: () => false,
    configurationHash: () => "",
    documentation: { openapi: () => "", page: unasked, script: unasked },
    ...{ lifecycle: life, metrics, traces: null, log },
    closed: closing({ lifecycle: life, metrics, log }),
    newId: () => Bun.randomUUIDv7().replaceAll("-", ""),
  };
  const listening = listen(
    mount(
      dependencies,
      operations.filter(({ metered }) => metered !== undefined),
    ),
    {
      ...{ host: "127.0.0.1", port: 0, idle_ms: limits.idle_ms },
    },
  );
  ending.defer(() => listening.breakOff());
  const { port } = new URL(listening.url);
  const asks = asksOf(models.map(({ id }) => id));
  const http = client();
  ending.defer(() => http.close());
  let asked = 0;

  async function ask({ path, headers, body }: Ask, signal: AbortSignal): Promise<boolean> {
    const reply = await http.post({
      url: `http://127.0.0.1:${port}${path}`,
      headers: { "content-type": "application/json", authorization: `Bearer ${caller.key}`, ...headers },
      ...{ body, tls: null, connect_ms: defaultTimeouts.connect_ms, isFresh: false, connected() {}, signal },
    });
    await readAtMost(reply, answer_bytes_max);
    return reply.status === 200;
  }

  return {
    organizationId: caller.credential.organization.id,
    async serve(run, { requests, concurrent, goesOn, signal }) {
      const admitting = admission({
        ...{ ledger: { run: ofEveryVerb(run), recover: unasked }, rates, metering: within.metering, grant_ms: 5_000 },
        ...{ settled: metrics.settled, waited: metrics.grant, sent: metrics.batch },
      });
      runs = inferenceRuns({ ...learned, admission: admitting, counter: parts.tokenCounter, engines: known }, told);
      let [left, answered] = [requests, 0];
      const one = async () => {
        while (left-- > 0 && goesOn()) if (await ask(asks[asked++ % asks.length]!, signal)) answered += 1;
      };
      try {
        await Promise.all(Array.from({ length: concurrent }, one));
      } finally {
        await admitting.stop(signal.aborted ? 0 : 1000);
      }
      return answered;
    },
    [Symbol.asyncDispose]: () => ending.disposeAsync(),
  };
}

/** Where a batch admits a request, another follows that lets it grow and says how far it is. */
function ofEveryVerb(run: Ledger["run"]): Ledger["run"] {
  return async (commands) => {
    const answers = await run(commands);
    const admit = commands.find((command): command is Admit => command.verb === "admit");
    if (admit) await run(furtherOf(admit));
    return answers;
  };
}

function furtherOf({ requestId, organizationId, limits, lease_ms }: Admit): Command[] {
  const names = { requestId, organizationId, number: 1 };
  return [
    { verb: "grow", ...names, limits, unitsTotal: 1e6, unitsTotal_min: 1e6 },
    { verb: "checkpoint", ...names, usage: noUsage, lease_ms },
  ];
}

function upstreamOf(url: string, protocol: UpstreamProtocol): Upstream {
  return { name: protocol, url, protocol, apiKey: null, timeouts: defaultTimeouts };
}

function modelAt(upstream: Upstream): CatalogModel {
  return {
    id: `warm-up/${upstream.protocol}`,
    ownedBy: "warm-up",
    created: 0,
    contextTokens: 128_000,
    outputTokens_max: 16_384,
    capabilities: new Set(capabilities),
    prices: { input: 1, cachedInput: 1, cacheWrite: 1, output: 1 },
    extraParams: [],
    routes: [{ upstream, model: "warm-up", priority: 0, weight: 1 }],
  };
}

/** With every limit, none of which is reached. */
const plan: Plan = {
  name: "warm-up",
  ...{ session: 1e15, week: 1e15, month: 1e15 },
  ...{ requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrentRequests: 1e6 },
};

function callerOf(): { key: string; credential: Credential } {
  const now = new Date();
  const credential: Credential = {
    key: {
      ...{ id: idOf(Bun.randomUUIDv7(), "key_"), name: "", scopes: [...scopes], allowedModels: null },
      ...{ allowedAddresses: null, expiresAt: null, revokedAt: null, lastUsedAt: null },
    },
    secret: { expiresAt: null, revokedAt: null },
    ends: { lifetimeAt: null, unusedAt: null },
    organization: {
      ...{ id: idOf(Bun.randomUUIDv7(), "org_"), slug: "warm-up", name: "", status: "active", plan: plan.name },
      ...{ extraUsage: { enabled: false, capUnits: null }, keyLifetimeMaxDays: null, keyUnusedMaxDays: null },
      ...{ keepsContent: false, createdAt: now, closedAt: null },
    },
    rates: [],
    readAt: now,
  };
  return { key: newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes))), credential };
}

async function unasked(): Promise<never> {
  throw new Error("warming up asks for no such thing");
}

const nothingKept: Dependencies["responses"]["store"] = {
  ...{ keep: unasked, conversation: unasked, turns: unasked, find: unasked, remove: unasked, forget: unasked },
};
