/**
 * Parses the address of a database, `postgres://user:password@host:port/name?option=value`. The driver does not parse
 * it, because the driver's errors would show the whole address. There may be several hosts, separated by commas;
 * options are those of libpq.
 */
import type postgres from "postgres";
import { DatabaseError } from "./database-error.ts";
import { type Security, securityOf } from "./tls.ts";

export type ServerAddress = { host: string; port: number; label: string } | { path: string; label: string };

export interface Address {
  /** The servers, in the order in which they are tried. One that was left (putLast) comes last. */
  places: ServerAddress[];
  /** When a server was last put at the end, by `performance.now()`. */
  movedAt_ms: number;
  security: Security;
  /** The user, the password, the database's name and the kind of server, as options of the driver. */
  login: Pick<postgres.Options<Types>, "user" | "password" | "database" | "target_session_attrs">;
  /** Parameters of the session, such as `search_path`. */
  settings: Record<string, string>;
  /** `host:port/name`, which may be printed. */
  label: string;
}
type Types = Record<string, postgres.PostgresType>;

const form = /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/;
/** Options of libpq that need no action in this client. */
const ignored = new Set(["channel_binding", "gssencmode", "krbsrvname", "sslcompression", "keepalives", "pgbouncer"]);

type Target = Address["login"]["target_session_attrs"];
/**
 * libpq's values of `target_session_attrs`, with the value that is passed to the driver. For `read-write` and
 * `read-only` the driver would compare `default_transaction_read_only` alone, which is the same on a primary and its
 * standby, so `primary` and `standby` are passed instead. A primary with that setting is left at the first write.
 */
const targets = new Map<string, Target>([
  ["any", undefined],
  ["read-write", "primary"],
  ["read-only", "standby"],
  ["primary", "primary"],
  ["standby", "standby"],
  ["prefer-standby", "prefer-standby"],
]);

export function addressOf(url: string): Address {
  const [, user, password, hosts = "", name, query = ""] =
    form.exec(url.trim()) ?? refuse("it does not have this form");
  if (/[@/]/.test(name ?? "")) refuse("an @ or / in it must be escaped (write %40 or %2F)");
  const options = new URLSearchParams(query);
  const take = (option: string): string | undefined => {
    const value = options.get(option) ?? undefined;
    options.delete(option);
    return value;
  };
  const places = placesOf(take("host") ?? decoded(hosts), take("port"));
  const database = take("dbname") ?? (name ? decoded(name) : undefined);
  const security = securityOf(take, refuse);
  const target = targetOf(take("target_session_attrs"));
  const login: Address["login"] = {
    ...(user ? { user: decoded(user) } : {}),
    ...(password === undefined ? {} : { password: decoded(password) }),
    ...(database === undefined ? {} : { database }),
    ...(target === undefined ? {} : { target_session_attrs: target }),
  };
  for (const option of ignored) options.delete(option);
  const label = `${places.map((place) => place.label).join(",")}/${database ?? ""}`;
  const movedAt_ms = Number.NEGATIVE_INFINITY;
  return { places, movedAt_ms, security, login, settings: Object.fromEntries(options), label };
}

/** The least time between two moves, so that connections do not go in circles while no server takes writes. */
const move_ms = 1_000;

/** Puts a server at the end, unless it is there, or another was put there just now. Returns whether it was moved. */
export function putLast(address: Address, place: ServerAddress | undefined, now_ms: number): boolean {
  const { places, movedAt_ms } = address;
  const at = place ? places.indexOf(place) : -1;
  if (at < 0 || at === places.length - 1 || now_ms - movedAt_ms < move_ms) return false;
  places.push(...places.splice(at, 1));
  address.movedAt_ms = now_ms;
  return true;
}

function targetOf(kind = "any"): Target {
  return targets.has(kind) ? targets.get(kind) : refuse("its target_session_attrs is not one of libpq's");
}

function placesOf(hosts: string, port = "5432"): Address["places"] {
  if (hosts.startsWith("/")) {
    const path = `${hosts}/.s.PGSQL.${port}`;
    return [{ path, label: path }];
  }
  return (hosts || "localhost").split(",").map((place) => {
    const [, host, own = port] =
      /^(\[[0-9a-fA-F:]+\]|[^:[\]\s@]+)(?::(\d+))?$/.exec(place) ?? refuse("a host in it is malformed");
    if (Number(own) < 1 || Number(own) > 65_535) refuse("a port in it is not one");
    return { host: host!.replace(/^\[|\]$/g, ""), port: Number(own), label: `${host}:${own}` };
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse("a percent sign in it does not begin an escape (write %25 for one)");
  }
}

function refuse(why: string): never {
  throw new DatabaseError(
    `DATABASE_URL is not a database's address: ${why}; it looks like postgres://user:password@host:5432/name`,
    "address",
  );
}
