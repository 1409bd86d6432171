/** Reads the path and the query of a request, and the id that stands in the place of `{id}` in its path. Pure. */
import { targetOf } from "../protocol/target.ts";
import type { IdPrefix } from "../store/ids.ts";

const place = "{id}";

export function pathOf(request: Request): string {
  return targetOf(request.url).path;
}

export function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(targetOf(request.url).query);
}

/** The id in the request's path. `pattern`: the path of the route that matched. */
export function idIn(pattern: string, request: Request): string {
  const [before = "", after = ""] = pattern.split(place);
  const path = pathOf(request);
  const end = after.includes("{") ? path.indexOf("/", before.length) : path.length - after.length;
  return path.slice(before.length, end);
}

interface Pattern {
  path: string;
  idPrefix?: IdPrefix | "";
}

export function hasId({ path }: Pattern): boolean {
  return path.includes(place);
}

/**
 * Whether the part of the path in the place of the id can be an id. If ids have a prefix, a part without it is not an
 * id but the name of a path that does not exist (`/v1/responses/x`).
 */
export function isIdThere({ path, idPrefix }: Pattern, request: Request): boolean {
  const id = idIn(path, request);
  return idPrefix === undefined ? id !== "" : new RegExp(`^${idPrefix}[^/]+$`).test(id);
}
