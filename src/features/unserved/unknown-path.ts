/**
 * Answers requests to paths that do not exist: 404 with the requested path. For a path of another API it says what this
 * service lacks; otherwise it suggests the path that was probably meant. Most such paths come from a base URL that
 * lacks `/v1`, or has it although the client adds it.
 */

import type { Framed } from "../../core/http/frame.ts";
import { Fault } from "../../core/inference/fault.ts";
import { masked } from "../../core/inference/masked.ts";
import { faultBodyOf } from "../../core/operations/fault-body.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { hasId, pathOf } from "../../core/operations/path.ts";
import { closestName } from "../../core/schema/closest.ts";
import { type UnservedPath, unservedAt } from "./unserved.ts";

export function unknownPath(operations: readonly Operation[]): Framed {
  const suggestionFor = suggestions(operations);
  const has = (wanted: string) => operations.some(({ path }) => path === wanted);
  const contract = ["/management.json", "/openapi.json"].find(has);
  // Only ports that serve inference can suggest one of the inference paths.
  const unservedHere = has("/v1/chat/completions") ? unservedAt : () => null;
  return {
    path: "/*",
    work({ request }) {
      const path = pathOf(request);
      const unserved = unservedHere(path);
      if (unserved) throw notServed(path, unserved);
      const suggestion = suggestionFor(path);
      const meant =
        suggestion && `You probably mean '${excerpt(suggestion.path)}'.${baseUrlAdvice(path, suggestion.path)}`;
      throw nothingAt(path, ".", meant ?? (contract && `${contract} lists all paths.`));
    },
    faultBody(fault, requestId, request) {
      const path = pathOf(request);
      const unserved = unservedHere(path);
      if (unserved) return faultBodyOf(unserved.onlyMessages ? "messages" : "client")(fault, requestId, request);
      const suggestion = suggestionFor(path);
      const body = suggestion ? faultBodyOf(suggestion.operation.faultShape) : faultBodyForPath;
      return body(fault, requestId, request);
    },
  };
}

/** The body for a path that does not exist. Below `/v1/messages` it has the form of Messages. */
export function faultBodyForPath(fault: Fault, requestId: string, request: Request): unknown {
  const isOfMessages = pathOf(request).startsWith("/v1/messages");
  return faultBodyOf(isOfMessages ? "messages" : "client")(fault, requestId, request);
}

export function notServed(path: string, { lack, nearest }: UnservedPath): Fault {
  return nothingAt(path, `: this service ${lack}.`, nearest);
}

function nothingAt(path: string, why: string, advice: string | undefined): Fault {
  const message = `There is nothing at '${excerpt(path)}'${why}`;
  return new Fault("route_not_found", advice ? `${message} ${advice}` : message);
}

interface Suggestion {
  path: string;
  operation: Operation;
}

/** Suggests an operation whose path ends like the requested one, or else one whose path is spelled similarly. */
function suggestions(all: readonly Operation[]): (requested: string) => Suggestion | null {
  const targets = all.filter(({ path }) => path !== "/").map((operation) => ({ operation, end: ending(operation) }));
  const spelled = targets.map(({ operation }) => operation).filter((operation) => !hasId(operation));

  return (requested) => {
    const path = requested.replaceAll(/\/{2,}/g, "/").replace(/\/$/, "");
    if (path.length > path_chars_max) return null;
    const [longest] = targets
      .map(({ operation, end }) => ({ operation, at: path.search(end) }))
      .filter(({ at }) => at >= 0)
      .sort((one, other) => one.at - other.at);
    if (longest) {
      const { operation, at } = longest;
      return { operation, path: (operation.path.startsWith("/v1/") ? "/v1" : "") + path.slice(at) };
    }
    const alike = spelled.filter((operation) => depthOf(operation.path) === depthOf(path));
    const name = closestName(
      path,
      alike.map((operation) => operation.path),
    );
    const operation = alike.find((operation) => operation.path === name);
    return operation ? { operation, path: operation.path } : null;
  };
}

/** Returns an expression that matches the end of the operation's paths, from after `/v1`. */
function ending({ path, idPrefix }: Operation): RegExp {
  const id = idPrefix === undefined ? ".+" : `${idPrefix}[^/]+`;
  const around = path.replace(/^\/v1\//, "/").split("{id}");
  return new RegExp(`${around.map(RegExp.escape).join(id)}$`);
}

function depthOf(path: string): number {
  return path.split("/").length;
}

function baseUrlAdvice(requested: string, suggested: string): string {
  if (suggested === `/v1${requested}`) return " End the base URL of your client with '/v1'.";
  if (requested === `/v1${suggested}`) return " Remove '/v1' from the base URL of your client, which adds it.";
  return "";
}

/** Longer paths are not compared: they are not spelling mistakes. */
const path_chars_max = 1024;
const excerpt_chars_max = 120;

/** The path as a message shows it: short, printable, and without a secret. */
function excerpt(path: string): string {
  const safe = masked(path).replaceAll(/[^\x21-\x7e]/g, "?");
  return safe.length > excerpt_chars_max ? `${safe.slice(0, excerpt_chars_max)}…` : safe;
}
