/**
 * Builds a node: every value that the modules need is made once, here or in a builder that is called here, and passed
 * to them. The builders are disposable; the stack disposes of them in the opposite order.
 */

import { consoleFiles } from "../admin/console/files.ts";
import { tryingHere } from "../admin/http/try-model.ts";
import { upstreamNames } from "../admin/management/context.ts";
import { billingOf, type Configuration, calendarOf } from "../config/configuration.ts";
import { shownConfiguration } from "../config/without-secrets.ts";
import { arrivals } from "../core/admission/arrivals.ts";
import { unreadBodies, unreadLimits } from "../core/body/unread.ts";
import type { Bounds } from "../core/http/bounds.ts";
import { type Lifecycle, lifecycle } from "../core/http/frame.ts";
import { latestCatalog } from "../core/routing/catalog.ts";
import { alignedClock, systemClock } from "../core/time/clock.ts";
import { codexModels } from "../features/codex/models.ts";
import { fittedBytes } from "../features/continuation/leaving-out.ts";
import { documentation } from "../features/openapi/documentation.ts";
import { storedResponses } from "../features/responses/records.ts";
import { answerSinks } from "../features/responses/sinks.ts";
import type { CountingWorkers } from "../features/tokenizers/counter.ts";
import { tokenCounter } from "../features/tokenizers/counter.ts";
import { startThread } from "../features/tokenizers/thread.ts";
import { type Readiness, readinessOf } from "../features/upkeep/readiness.ts";
import { drains } from "../stores/postgres/drains.ts";
import { redisEngineSlots } from "../stores/redis/engine-slots.ts";
import { type Administering, administering } from "./administering.ts";
import { type Admitting, startAdmission } from "./admitting.ts";
import type { NodeDependencies } from "./app.ts";
import { type Authentication, startAuthentication } from "./authentication.ts";
import { boundsOf, startBounds } from "./bounding.ts";
import { startConsole } from "./console.ts";
import { followDrains } from "./draining.ts";
import { type Engines, engines } from "./engines.ts";
import { disposable, type Foundation } from "./foundation.ts";
import { inferenceRuns } from "./inference-runs.ts";
import type { Listeners } from "./listeners.ts";
import { problemOf, workersChecks, workersReadings } from "./membership.ts";
import { startNotices } from "./noticing.ts";
import { contract } from "./operations.ts";
import { administratorsCheck, readinessChecks, routesCheck } from "./readiness-checks.ts";
import { readings } from "./readings.ts";
import { newIdentity, startReporting } from "./reporting.ts";
import { type SigningIn, startSigningIn } from "./signing-in.ts";
import { storePatience } from "./store-patience.ts";
import { type Stores, startStores } from "./stores.ts";
import { startTelemetry, type Telemetry } from "./telemetry.ts";
import { startWarmNode } from "./warm-node.ts";
import { countsNothing } from "./warm-store.ts";

/** How long a start waits for the list of existing keys. If it takes longer, the rest is read while the node serves. */
const existing_ms = 2_000;

/** The built values from which the operations and the administration are made. */
interface NodeParts {
  telemetry: Telemetry;
  admitting: Admitting;
  authentication: Authentication;
  lifecycle: Lifecycle;
  bounds: Bounds;
  stores: Stores;
  counter: Pick<CountingWorkers, "examine">;
  engines: Engines;
  readiness: Readiness;
  signingIn: SigningIn;
}

export type Node = Awaited<ReturnType<typeof startNode>>;

/** Builds a complete node without its listeners. */
export async function startNode(foundation: Foundation) {
  await using ending = new AsyncDisposableStack();
  const parts = await startParts(foundation, ending);
  const { serving, settings } = foundation;
  const { readiness, stores, engines } = parts;
  const { metrics } = parts.telemetry;
  const { inForce, publishing } = parts.admitting;
  const dependencies = dependenciesOf(foundation, parts);
  workersReadings(metrics, serving.member);
  readings(metrics, {
    ...parts,
    admission: parts.admitting.admission,
    database: serving.database,
    configurationHash: serving.configuration.hash,
  });
  const people = parts.signingIn.parts;
  const administering = administrationOf(foundation, parts);
  const node = {
    dependencies,
    ...administering,
    people,
    /** Tries models for a user who administers the node on its own machine. */
    tryAs: tryingHere(dependencies, administering.entrance) ?? undefined,
    console: ending.use(
      startConsole(foundation, { people, files: await consoleFiles(), typedToken: administering.typedToken }),
    ),
    publishing,
    inForce,
    lifecycle: parts.lifecycle,
    sockets: parts.bounds.sockets,
    ledger: stores.ledger,
    prepareNames: ({ upstreams }: Configuration) => engines.names.prepare(upstreams),
    readinessBegan: readiness.began,
    existingRead: parts.authentication.existing.isRead(existing_ms),
    /** The values that a worker reports to its supervisor. */
    report: {
      problem: () => problemOf(readiness.results()),
      openCount: () => parts.lifecycle.openCount,
      values: metrics.values,
      routes: engines.routes,
    },
    /** Reports this process to the fleet until the result is disposed of. */
    startReporting: ({ url, certificateExpiresAt }: Pick<Listeners, "url" | "certificateExpiresAt">) =>
      startReporting({
        ...parts,
        certificateExpiresAt,
        admission: parts.admitting.admission,
        metrics,
        identity: serving.member?.identity ?? newIdentity(),
        member: serving.member,
        version: serving.version,
        url,
        configuration: serving.configuration,
        store: stores.fleet,
        failed: foundation.outage("fleet_unreported"),
      }),
    startWarmNode() {
      const counter = serving.database.kind === "pglite" ? countsNothing : parts.counter;
      return startWarmNode({
        configuration: serving.configuration.current(),
        like: { ...dependencies, tokenCounter: counter },
        bounds: boundsOf(settings, parts.lifecycle),
        counter,
      });
    },
  };
  return disposable(node, ending);
}

async function startParts(foundation: Foundation, ending: AsyncDisposableStack): Promise<NodeParts> {
  const { serving, settings, log, outage } = foundation;
  const { configuration, database } = serving;
  const telemetry = ending.use(await startTelemetry(foundation));
  const { metrics } = telemetry;
  const life = lifecycle();
  const { bounds } = ending.use(startBounds(settings, life));
  const patience = storePatience(database.kind, systemClock());
  const stores = ending.use(await startStores(foundation, metrics));
  const counter = tokenCounter(() => startThread(serving.isCompiled), outage("count_worker_lost"));
  ending.defer(() => counter.stop());
  const admitting = ending.use(await startAdmission(foundation, { stores, metrics, patience }));
  const signingIn = ending.use(startSigningIn(foundation));
  const people = signingIn.parts;
  const authentication = ending.use(await startAuthentication(foundation, { metrics, people, patience }));
  const telling = ending.use(startNotices(foundation));
  const engineParts = ending.use(
    engines({
      configuration: configuration.current,
      log,
      resolved: metrics.resolved,
      strayed(upstream) {
        metrics.strayed(upstream);
        telling.strayed(upstream);
      },
      late: telemetry.process.late,
      slots: stores.redis && redisEngineSlots(stores.redis),
    }),
  );
  ending.use(
    await followDrains({
      store: drains(database),
      read: (all) => engineParts.drain(all),
      failed: outage("drains_unread"),
    }),
  );
  const readiness = startReadiness(foundation, { lifecycle: life, stores, engines: engineParts });
  ending.defer(() => readiness.stop());
  return {
    telemetry,
    admitting,
    authentication,
    lifecycle: life,
    bounds,
    stores,
    counter,
    engines: engineParts,
    readiness,
    signingIn,
  };
}

function startReadiness(
  { serving, log }: Foundation,
  { lifecycle, stores, engines }: Pick<NodeParts, "lifecycle" | "stores" | "engines">,
): Readiness {
  const { configuration, database, member } = serving;
  const checks = [
    ...readinessChecks(database, stores, configuration),
    administratorsCheck(database, log, () => performance.now()),
    routesCheck(engines.routes),
  ];
  return readinessOf([...checks, ...workersChecks(member)], {
    lifecycle,
    clock: systemClock(),
    intervals: alignedClock(),
    turned(failing) {
      const checks = Object.fromEntries(failing.map(({ name, problem }) => [name, problem]));
      if (failing.length > 0) log.event("warn", "not_ready", { checks });
      else log.event("info", "ready");
    },
  });
}

function dependenciesOf({ serving, settings, log, unknownModel }: Foundation, parts: NodeParts): NodeDependencies {
  const { configuration, member } = serving;
  const { lifecycle, bounds, stores, engines } = parts;
  const { metrics, traces } = parts.telemetry;
  const { admission, inForce } = parts.admitting;
  const { authentication, standings } = parts.authentication;
  const catalogOf = latestCatalog();
  const kept = {
    responses: { store: stores.responses, settings: () => configuration.current().responses },
    kept: stores.kept,
    ledger: stores.ledger,
    limits: settings.limits,
    log,
  };
  return {
    ...kept,
    catalog: () => catalogOf(configuration.current().catalog, inForce.plans()),
    standings,
    authenticate: authentication.authenticate,
    arrivals: arrivals(() => performance.now()),
    runs: inferenceRuns({
      admission,
      counter: parts.counter,
      inputEstimate: stores.inputEstimate,
      outputCalibration: stores.outputCalibration,
      engines,
      metering: () => configuration.current().metering,
      shares: () => configuration.current().shares,
      metrics,
      traces,
      log,
      unknownModel,
    }),
    rates: stores.rates,
    refused: stores.refused,
    inputEstimate: stores.inputEstimate,
    stored: storedResponses(kept),
    sinks: answerSinks(kept),
    tokenCounter: parts.counter,
    codexModels,
    fitted: (call, model, request) => fittedBytes(stores.inputEstimate, call, model, request),
    currency: configuration.current().metering.currency,
    consoleUrl: () => configuration.current().identity?.consoleUrl ?? null,
    messages: () => configuration.current().messages,
    images: () => configuration.current().images,
    bounds,
    unread: unreadBodies(unreadLimits(settings.limits.body_bytes_max)),
    readiness: parts.readiness.results,
    routes: member ? member.routes : async () => engines.routes(),
    shedsConnection: member ? member.shedsConnection : () => false,
    configurationHash: configuration.hash,
    documentation: documentation(contract, () => configuration.current().catalog, serving.contractVersion),
    lifecycle,
    metrics: member ? { ...metrics, render: member.metrics } : metrics,
    traces,
    newId: () => Bun.randomUUIDv7("buffer").toHex(),
  };
}

function administrationOf({ serving, settings }: Foundation, parts: NodeParts): Administering {
  const { stores } = parts;
  const { publishing } = parts.admitting;
  const { configuration, database, contractVersion } = serving;
  const { server, limits } = settings;
  return administering(
    {
      database,
      ledger: stores.ledger,
      refused: stores.refused,
      configuration: () => shownConfiguration(configuration.current()),
      server,
      limits,
      changed: parts.authentication.changed,
      authenticateSecret: parts.authentication.authentication.authenticateSecret,
      // The plans are read from the store: this node may learn a moment later of a plan that another node has created.
      catalog: async () => ({
        plans: new Map((await publishing.store.inForce()).map((plan) => [plan.name, plan])),
        models: [...configuration.current().catalog.models.keys()],
        aliases: configuration.current().catalog.aliases,
        ...upstreamNames(configuration.current().upstreams),
        billing: billingOf(configuration.current()),
        calendar: calendarOf(configuration.current().metering),
      }),
    },
    contractVersion,
  );
}
