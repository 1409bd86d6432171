/**
 * Mounts the operations, each at its method and path. Apart from the simulator and the contract's page, only this file
 * and node/waiting-app.ts know Elysia.
 */
import { Elysia } from "elysia";
import type { ManagementEntrance } from "../admin/http/gate.ts";
import { hostsNamed, otherHost } from "../admin/http/host.ts";
import { managementServed } from "../admin/http/mounted.ts";
import { type ConsoleServed, mountedConsole } from "../admin/people/console.ts";
import { wantsPage } from "../admin/people/files.ts";
import { serviceOperations } from "../admin/people/service.ts";
import { withWelcome } from "../admin/people/welcome.ts";
import { methodNotAllowed } from "../core/http/fault-answer.ts";
import { type FrameDependencies, type Framed, frame, identified, type Serve } from "../core/http/frame.ts";
import { json } from "../core/http/json.ts";
import { type ConnectionDependencies, RuntimeConnection } from "../core/http/listen.ts";
import { Fault } from "../core/inference/fault.ts";
import { faultBodyOf } from "../core/operations/fault-body.ts";
import { liveness, readiness, rootProbe } from "../core/operations/health.ts";
import type { Operation } from "../core/operations/operation.ts";
import { hasId, isIdThere, pathOf } from "../core/operations/path.ts";
import { serveOperation } from "../core/operations/serve-operation.ts";
import { encodeFault } from "../core/protocol/openai-chat/fault.ts";
import type { IdentityParts } from "../features/identity/identity.ts";
import type { OpenapiDependencies } from "../features/openapi/documentation.ts";
import type { ResponsesDependencies } from "../features/responses/dependencies.ts";
import { notServed, unknownPath } from "../features/unserved/unknown-path.ts";
import { unservedAt } from "../features/unserved/unserved.ts";
import { metricsOperations, operations, operatorProbes, unlistedOperations, upgrades } from "./operations.ts";

/** The core's dependencies, and those of every feature whose operations are mounted. */
export type NodeDependencies = ResponsesDependencies & OpenapiDependencies;

interface AppOptions {
  /** Whether /metrics is served on this port. */
  metrics: boolean;
  /**
   * The dependencies of sign-ins; null or absent if nobody can sign in. `contextFor` is for the verb by which people
   * request higher limits.
   */
  people?: (IdentityParts & Pick<ManagementEntrance, "contextFor">) | null;
  /** The origins of the console; links use the first one. Absent: there is no console. */
  consoleOrigins?: () => readonly string[];
  /** Whether this port itself speaks HTTPS. Absent: it does not. */
  isSecure?: boolean;
}

export function app(dependencies: NodeDependencies, options: AppOptions) {
  const { people = null, consoleOrigins = () => [], isSecure = false } = options;
  const identity = () => people?.identity() ?? null;
  return mount(dependencies, [
    ...operations.map((one) => (one === rootProbe ? withWelcome(one, { identity, consoleOrigins, isSecure }) : one)),
    ...unlistedOperations,
    ...(people ? serviceOperations(people, people.contextFor) : []),
    ...(options.metrics ? metricsOperations : []),
  ]);
}

/** The application of the console's port. All pages are one document, which routes in the browser. */
export function consoleApp(dependencies: NodeDependencies, served: ConsoleServed) {
  const { operations: own, page } = mountedConsole(served);
  return mount(dependencies, [...own, liveness, readiness], { page });
}

/** The application of the operator's port, which answers only requests for its own host names. */
export function operatorApp(dependencies: NodeDependencies, management: ManagementEntrance) {
  const mounted = [...metricsOperations, ...operatorProbes, ...managementServed(management)];
  return mount(dependencies, mounted, { answersTo: hostsNamed(management.names) });
}

interface Mounting {
  /** Whether a `Host` header names this port. Absent: every host is accepted. */
  answersTo?: (host: string | null) => boolean;
  /** The answer to browsers that request a page at any other path. */
  page?: Framed;
}

interface Routing extends Mounting {
  serve(operation: Operation): Serve;
  /** The answer to requests whose path belongs to no operation. */
  nowhere: Framed;
}

export type RoutingDependencies = FrameDependencies & ConnectionDependencies;

/** Mounts operations: each with its scope, its guards and its description. */
export function mount(dependencies: NodeDependencies, mounted: readonly Operation[], mounting: Mounting = {}) {
  const serve = (operation: Operation) => serveOperation(dependencies, operation);
  return routed(dependencies, mounted, {
    ...mounting,
    serve,
    nowhere: unknownPath(atEachPath(mounted).map(([first]) => first)),
  });
}

/** Routes each request to the operation at its method and path. */
export function routed(
  dependencies: RoutingDependencies,
  mounted: readonly Operation[],
  { serve: serveOf, nowhere: notThere, answersTo, page }: Routing,
) {
  const elysia = new Elysia({ strictPath: true, handler: { standardHostname: false } });
  // The frame (core/http/frame.ts) answers all faults, so an error here is a defect of the frame itself.
  elysia.onError(({ error }) => {
    const requestId = `req_${dependencies.newId()}`;
    dependencies.log.event("error", "unhandled", { request_id: requestId, cause: String(error) });
    const fault = new Fault("internal_error", "The service failed to handle this request. Please try again.");
    return identified(json(500, encodeFault(fault, requestId)), requestId);
  });
  const nowhere = frame(dependencies, notThere);
  const paged = page ? frame(dependencies, page) : nowhere;
  const unknown: Serve = (request, connection) => (wantsPage(request) ? paged : nowhere)(request, connection);
  const misdirected = frame(dependencies, otherHost);
  const route = (method: string, pattern: string, serve: Serve, detail: object) =>
    elysia.route(
      method,
      pattern,
      ({ request, server }) => {
        const serving = !answersTo || answersTo(request.headers.get("host")) ? serve : misdirected;
        return serving(request, new RuntimeConnection(dependencies, request, server));
      },
      {
        parse: "none",
        detail,
      },
    );
  for (const here of atEachPath(mounted)) {
    const [first] = here;
    const pattern = patternOf(first);
    const whereIdIs = (serve: Serve): Serve =>
      hasId(first)
        ? (request, connection) => (isIdThere(first, request) ? serve : unknown)(request, connection)
        : serve;
    for (const operation of here) {
      const { operationId, tag, summary, description } = operation;
      const serve = whereIdIs(serveOf(operation));
      for (const method of methodsOf(operation))
        route(method, pattern, serve, { operationId, tags: [tag], summary, description });
    }
    route("ALL", pattern, whereIdIs(otherRequests(dependencies, here, serveOf)), { hide: true });
  }
  route("ALL", "/*", unknown, { hide: true });
  return elysia;
}

function atEachPath(mounted: readonly Operation[]): [Operation, ...Operation[]][] {
  return [...Map.groupBy(mounted, ({ path }) => path).values()] as [Operation, ...Operation[]][];
}

/** The methods of an operation. HEAD is handled like GET, so that its headers and its length are the same. */
function methodsOf({ method }: Operation): string[] {
  return method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()];
}

/** Serves the requests to an operation's path that belong to none of its methods: upgrades, and other methods. */
function otherRequests(
  dependencies: RoutingDependencies,
  here: readonly [Operation, ...Operation[]],
  serveOf: Routing["serve"],
): Serve {
  const refuse = otherMethod(dependencies, here);
  const upgrade = upgrades.find(({ path }) => path === here[0].path);
  if (!upgrade) return refuse;
  const serve = serveOf(upgrade);
  return (request, connection) => (asksForUpgrade(request) ? serve : refuse)(request, connection);
}

function asksForUpgrade({ method, headers }: Request): boolean {
  return method === "GET" && /\bwebsocket\b/i.test(headers.get("upgrade") ?? "");
}

function otherMethod(dependencies: RoutingDependencies, here: readonly [Operation, ...Operation[]]): Serve {
  const [{ path, faultShape }] = here;
  const allow = here.flatMap(methodsOf).join(", ");
  return frame(dependencies, {
    path,
    faultBody: faultBodyOf(faultShape),
    work({ request }) {
      const asked = pathOf(request);
      const unserved = hasId({ path }) ? unservedAt(asked) : null;
      throw unserved ? notServed(asked, unserved) : methodNotAllowed(request.method, allow);
    },
  });
}

/** The router's pattern of a path. An id without a prefix may contain slashes, as ids of models do. */
function patternOf({ path, idPrefix }: Operation): string {
  return path.replace("{id}", idPrefix === undefined ? "*" : ":id").replace(/\{(\w+)\}/, ":$1");
}
