/** The id in a path, between what stands before and after it; a path that is without one, or goes on, names nothing. */
import type { Call } from "./call.ts";
import { routeNotFound } from "./door.ts";

export function idIn({ request }: Call, before: string, after = ""): string {
  const { pathname } = new URL(request.url);
  const id = pathname.slice(before.length, pathname.length - after.length);
  if (id === "" || id.includes("/")) throw routeNotFound();
  return id;
}
