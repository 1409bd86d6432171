/**
 * One connection to a Postgres server. After it is lost, `connectionTo` must be called for a new one. The driver would
 * reconnect under the same handle, which at the wrong moment ends the process or breaks the connection for good
 * (docs/design/runtime.md, Drizzle and Postgres), so it gets no second socket. The driver has no deadline for a silent
 * server either: each statement gets one here.
 */
import type { Socket } from "node:net";
import postgres from "postgres";
import { Countdown } from "../../core/time/cancellation.ts";
import type { StoreWatcher } from "../../features/telemetry/store/watcher.ts";
import { type Address, putLast } from "./address.ts";
import type { Session } from "./database.ts";
import { DatabaseError, faultOf, isReadOnly } from "./database-error.ts";
import { dialled } from "./dial.ts";
import { parameter, parsers } from "./values.ts";

/** A connection. Statements are sent in the order of the calls. */
export interface DatabaseConnection extends Session {
  /** Runs a statement. Returns the name of the last command. */
  exec(text: string): Promise<string>;
  /** The number of statements that wait for an answer. */
  inFlight(): number;
  isLost(): boolean;
  /** Sets how long a statement may take from now on. Null sets the connection's configured time again. */
  allow(statement_ms: number | null): void;
  /** Gives up the connection as if it were lost. */
  discard(): void;
  /** Closes the connection. Waits at most this long for the statements in flight. */
  end(wait_ms: number): Promise<void>;
}

export interface Dialing {
  address: Address;
  connect_ms: number;
  /**
   * The server ends a statement that takes longer. If there is no answer after half as long again, the connection
   * counts as lost.
   */
  statement_ms: number;
  /** Parameters of the session. */
  settings: Record<string, string | number>;
  /** Called once when the connection is lost, could not be made, or takes no more statements. */
  lost?: () => void;
  notified?: (channel: string, payload: string) => void;
  watcher: StoreWatcher;
}

/**
 * How long a new connection stays on a server that takes no writes. A database that is read-only for long would otherwise
 * be dialled anew for each write.
 */
const stay_ms = 2_000;

/** A connection that is made with its first statement. All errors are DatabaseErrors. */
export function connectionTo(dialing: Dialing): DatabaseConnection {
  const { watcher } = dialing;
  const state = {
    isLost: false,
    /** Whether nothing more is sent. */
    isLeft: false,
    isEnded: false,
    hasAnswered: false,
    statement_ms: dialing.statement_ms,
  };
  const made_ms = performance.now();
  watcher.opened("postgres");
  /** Functions that fail the waiting statements: when a connection is lost, the driver leaves some waiting for ever. */
  const waiting = new Set<(why: unknown) => void>();
  const lose = (why: DatabaseError = lost()) => {
    if (state.isLost) return;
    state.isLost = true;
    if (!state.isEnded && !state.isLeft) watcher.lost("postgres");
    places.length = 0;
    for (const fail of waiting) fail(why);
    void sql.end({ timeout: 0 });
    retire();
  };
  const retire = () => {
    if (state.isLeft) return;
    state.isLeft = true;
    dialing.lost?.();
  };
  const order = [...dialing.address.places];
  /** The servers that have not been tried yet. */
  const places = [...order];
  /**
   * Leaves a server that takes no writes, if there is another to try first, or after a while: its host name may then
   * lead to the primary. Statements in flight are still answered.
   */
  const leave = () => {
    const now_ms = performance.now();
    const hasMoved = putLast(dialing.address, order[order.length - places.length - 1], now_ms);
    if (hasMoved || now_ms - made_ms >= stay_ms) retire();
  };
  const settings = settingsOf(dialing);
  const sql = postgres(driverOptions(dialing, settings.atStart, places, lose));
  let isSet = false;
  /** Sends the session's settings together with the first statement: a session is not used without them. */
  function set(): void {
    if (isSet) return;
    isSet = true;
    const names = Object.keys(settings.after);
    const calls = names.map((_, at) => `set_config($${2 * at + 1}, $${2 * at + 2}, false)`);
    const values = Object.entries(settings.after).flat();
    sql.unsafe(`select ${calls.join(", ")}`, values.map(parameter)).then(
      () => {},
      (error) => lose(failure(error)),
    );
  }

  async function answer<T>(send: () => PromiseLike<T>): Promise<T> {
    if (state.isLeft) throw lost();
    const sent_ms = performance.now();
    const report = (failure: "connection" | "statement" | null) =>
      watcher.answered("postgres", performance.now() - sent_ms, failure);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    waiting.add(reject);
    const wait_ms = state.statement_ms * 1.5 + (state.hasAnswered ? 0 : dialing.connect_ms);
    const countdown = new Countdown(() => lose(silent(wait_ms)));
    countdown.set(wait_ms);
    try {
      set();
      send().then(resolve, reject);
      const result = await promise;
      state.hasAnswered = true;
      report(null);
      return result;
    } catch (error) {
      const failed = failure(error);
      report(faultOf(failed));
      if (isReadOnly(failed)) leave();
      throw failed;
    } finally {
      countdown.stop();
      waiting.delete(reject);
      if (state.isLeft && waiting.size === 0) lose();
    }
  }

  return {
    async run(text, params, form, isOnce = false) {
      const values = params.map(parameter);
      const rows = await answer<ArrayLike<unknown>>(() => {
        const query = sql.unsafe(text, values, isOnce ? unprepared : prepared);
        return form === "arrays" ? query.values() : query;
      });
      return Array.from(rows);
    },
    async exec(text) {
      const results = await answer<unknown>(() => sql.unsafe(text));
      const last = Array.isArray(results) && Array.isArray(results.at(-1)) ? results.at(-1) : results;
      return (last as { command?: string }).command ?? "";
    },
    inFlight: () => waiting.size,
    isLost: () => state.isLeft,
    allow(statement_ms) {
      state.statement_ms = statement_ms ?? dialing.statement_ms;
    },
    discard: () => lose(),
    async end(wait_ms) {
      state.isEnded = true;
      await sql.end({ timeout: wait_ms / 1_000 });
      lose();
    },
  };
}

// Unless `simple` is false, the driver sends a statement without parameters unprepared. The option is missing in the
// driver's types.
const prepared: postgres.UnsafeQueryOptions = Object.assign({ prepare: true }, { simple: false });
const unprepared: postgres.UnsafeQueryOptions = Object.assign({ prepare: false }, { simple: false });

function lost(): DatabaseError {
  return new DatabaseError("the connection to the database was lost", "unavailable");
}

function silent(wait_ms: number): DatabaseError {
  return new DatabaseError(`the database did not answer within ${wait_ms} ms`, "silent");
}

function failure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  if (error instanceof Error && "code" in error && losses.has(String(error.code))) return lost();
  // The driver's error is not set as the cause: it contains the parameters, and logs print causes.
  if (error instanceof postgres.PostgresError) return new DatabaseError(error.message, error.code);
  // A server may refuse the client's certificate only after the handshake.
  const isTls = error instanceof Error && "code" in error && String(error.code).startsWith("ERR_SSL_");
  return new DatabaseError(error instanceof Error ? error.message : String(error), isTls ? "tls" : "unavailable");
}

/** The driver's error codes for a lost connection. Their messages name an address that is not the real one. */
const losses = new Set(["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "CONNECTION_ENDED"]);

/** Options of the driver that its types lack. */
interface DriverOptions extends postgres.Options<Record<string, postgres.PostgresType>> {
  socket(): Promise<Socket>;
  onnotify?: (channel: string, payload: string) => void;
}

/**
 * Options that can only be given when a session starts, `options` above all. All others are set afterwards, because
 * poolers accept only a few at the start (docs/databases.md, Poolers).
 */
const startOnly =
  /^(application_name|timezone|datestyle|client_encoding|standard_conforming_strings|options|replication)$/i;

function settingsOf({ address, statement_ms, settings }: Dialing) {
  const all = Object.entries({
    application_name: "sluice",
    // Postgres would compile a statement with JIT if it overestimates the cost, which takes a hundred times as long as
    // running it. This would happen in every session, for as long as a small table has no statistics.
    jit: "off",
    ...address.settings,
    TimeZone: "UTC",
    DateStyle: "ISO",
    bytea_output: "hex",
    statement_timeout: statement_ms,
    ...settings,
  }).map(([name, value]): [string, string] => [name, String(value)]);
  return {
    atStart: Object.fromEntries(all.filter(([name]) => startOnly.test(name))),
    after: Object.fromEntries(all.filter(([name]) => !startOnly.test(name))),
  };
}

function driverOptions(
  { address, connect_ms, notified }: Dialing,
  connection: Record<string, string>,
  places: Address["places"],
  lose: (why?: DatabaseError) => void,
): DriverOptions {
  return {
    ...address.login,
    // The sockets that the driver gets are encrypted already.
    ssl: false,
    max: 1,
    max_lifetime: null,
    connect_timeout: connect_ms / 1_000,
    fetch_types: false,
    onnotice: () => {},
    ...(notified ? { onnotify: notified } : {}),
    onclose: () => lose(),
    types,
    connection,
    // The driver uses only the number of hosts, so their names are made up. It calls `socket` once more for each server
    // that is not of the kind in `target_session_attrs`. It also calls it to reconnect, which fails, because no server
    // is left to try.
    host: places.map(() => "place").join(),
    async socket() {
      try {
        return await dialled(places, address, connect_ms);
      } catch (error) {
        lose(failure(error));
        throw error;
      }
    },
  };
}

/** Our own parser for every type, so that parameters are sent unchanged and the driver guesses nothing. */
const types: Record<string, postgres.PostgresType> = Object.fromEntries(
  [...parsers].map(([type, parse]) => [`type_${type}`, { to: type, from: [type], serialize: String, parse }]),
);
