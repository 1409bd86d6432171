/** Opens sockets to Postgres: to the first server that accepts one, encrypted as the address says. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { within } from "../../core/time/cancellation.ts";
import type { Address, ServerAddress } from "./address.ts";
import { DatabaseError } from "./database-error.ts";
import { LostConnection, type Security, secured } from "./tls.ts";

/**
 * Opens a socket to the first server that accepts one, and removes it and those before it from the list. Throws
 * DatabaseError.
 */
export async function dialled(
  places: ServerAddress[],
  { security }: Pick<Address, "security">,
  connect_ms: number,
): Promise<Socket> {
  let failed: unknown = new DatabaseError("no server there is of the kind that the address asks for", "unavailable");
  for (let place = places.shift(); place; place = places.shift()) {
    try {
      return await socketTo(place, security, connect_ms);
    } catch (error) {
      failed = error instanceof DatabaseError ? error : unreached(place, error as NodeJS.ErrnoException);
    }
  }
  throw failed;
}

function unreached({ label }: ServerAddress, { code = "", message }: NodeJS.ErrnoException): DatabaseError {
  const why = code ? `${label} ${reasons[code] ?? `cannot be reached (${code})`}` : message;
  return new DatabaseError(why, "unavailable");
}

async function socketTo(place: ServerAddress, security: Security, connect_ms: number): Promise<Socket> {
  const plain = await opened(place, connect_ms);
  // A Unix socket is never encrypted.
  if ("path" in place) return plain;
  let isSilent = false;
  const late = (message: string) => {
    isSilent = true;
    return new Error(message);
  };
  try {
    return await within(secured(plain, place.host, security), connect_ms, place.label, late);
  } catch (error) {
    plain.destroy();
    if (isSilent) throw error;
    if (security.mode === "prefer" || security.mode === "allow") return opened(place, connect_ms);
    throw new DatabaseError(
      `${place.label} ${(error as Error).message}`,
      error instanceof LostConnection ? "unavailable" : "tls",
    );
  }
}

async function opened(place: ServerAddress, connect_ms: number): Promise<Socket> {
  const socket = connect("path" in place ? place : { ...place, noDelay: true });
  try {
    await within(once(socket, "connect"), connect_ms, place.label);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

const reasons: Record<string, string> = {
  ECONNREFUSED: "refuses connections (ECONNREFUSED): is a Postgres running there?",
  ENOTFOUND: "is no known host (ENOTFOUND)",
};
