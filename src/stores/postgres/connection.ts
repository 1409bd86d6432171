/**
 * One connection to a Postgres server, for as long as it lasts. After it is lost, a new one is another value. The
 * driver would reconnect under the same handle, which at the wrong moment ends the process or breaks the connection for
 * good (docs/design/runtime.md, Drizzle and Postgres), so it gets no second socket. It has no deadline for a silent
 * server either: each statement gets one here.
 */
import type { Socket } from "node:net";
import postgres from "postgres";
import type { StoreWatcher } from "../../core/store/watcher.ts";
import { Countdown } from "../../core/time/deadline.ts";
import type { Address } from "./address.ts";
import type { Session } from "./database.ts";
import { DatabaseError, faultOf } from "./database-error.ts";
import { dialled } from "./dial.ts";
import { parameter, parsers } from "./values.ts";

/** Statements are sent in the order of the calls. */
export interface DatabaseConnection extends Session {
  /** Returns the name of the last command. */
  exec(text: string): Promise<string>;
  /** The statements that wait for an answer. */
  inFlight(): number;
  isLost(): boolean;
  /** Statements from now on may take this long; null: as long as was set for the connection. */
  allow(statement_ms: number | null): void;
  /** Gives the connection up, as if it were lost. */
  discard(): void;
  /** Waits at most this long for the statements in flight. */
  end(wait_ms: number): Promise<void>;
}

export interface Dialing {
  address: Address;
  connect_ms: number;
  /**
   * The server ends a statement that takes longer. After half as long again without an answer, the connection is lost.
   */
  statement_ms: number;
  /** Parameters of the session. */
  settings: Record<string, string | number>;
  /** Called once, also if the connection was never made. */
  lost?: () => void;
  notified?: (channel: string, payload: string) => void;
  watcher: StoreWatcher;
}

/** Connects with the first statement. All errors are DatabaseErrors. */
export function connectionTo(dialing: Dialing): DatabaseConnection {
  const { watcher } = dialing;
  const state = { isLost: false, isEnded: false, hasAnswered: false, statement_ms: dialing.statement_ms };
  watcher.opened("postgres");
  /** How to fail each waiting statement: the driver leaves some waiting for ever when a connection is lost. */
  const waiting = new Set<(why: unknown) => void>();
  const lose = (why: DatabaseError = lost()) => {
    if (state.isLost) return;
    state.isLost = true;
    if (!state.isEnded) watcher.lost("postgres");
    places.length = 0;
    for (const fail of waiting) fail(why);
    void sql.end({ timeout: 0 });
    dialing.lost?.();
  };
  /** The places that remain to be tried. */
  const places = [...dialing.address.places];
  const settings = settingsOf(dialing);
  const sql = postgres(driverOptions(dialing, settings.atStart, places, lose));
  let isSet = false;
  /** Sent before the first statement, together with it. A session is not used without its settings. */
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
    if (state.isLost) throw lost();
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
      throw failed;
    } finally {
      countdown.stop();
      waiting.delete(reject);
    }
  }

  return {
    async run(text, params, form) {
      const values = params.map(parameter);
      const rows = await answer<ArrayLike<unknown>>(() => {
        const query = sql.unsafe(text, values, prepared);
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
    isLost: () => state.isLost,
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

// Unless `simple` is false, the driver sends a statement without parameters unprepared. Its types do not know the
// option.
const prepared: postgres.UnsafeQueryOptions = Object.assign({ prepare: true }, { simple: false });

function lost(): DatabaseError {
  return new DatabaseError("the connection to the database was lost", "unavailable");
}

function silent(wait_ms: number): DatabaseError {
  return new DatabaseError(`the database did not answer within ${wait_ms} ms`, "silent");
}

function failure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  if (error instanceof Error && "code" in error && losses.has(String(error.code))) return lost();
  // The driver's error is not set as the cause: it carries the parameters, and logs print causes.
  if (error instanceof postgres.PostgresError) return new DatabaseError(error.message, error.code);
  // A server may refuse our certificate after the handshake.
  const isTls = error instanceof Error && "code" in error && String(error.code).startsWith("ERR_SSL_");
  return new DatabaseError(error instanceof Error ? error.message : String(error), isTls ? "tls" : "unavailable");
}

/** Codes of the driver's errors for a lost connection. Their messages name an address that the driver does not know. */
const losses = new Set(["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "CONNECTION_ENDED"]);

/** Options that the driver has and its types do not name. */
interface DriverOptions extends postgres.Options<Record<string, postgres.PostgresType>> {
  socket(): Promise<Socket>;
  onnotify?: (channel: string, payload: string) => void;
}

/**
 * Poolers accept only a few parameters at the start of a session (docs/databases.md, Poolers), so the others are set
 * afterwards. Further options of an address, `options` above all, can only be given at the start.
 */
const startOnly =
  /^(application_name|timezone|datestyle|client_encoding|standard_conforming_strings|options|replication)$/i;

function settingsOf({ address, statement_ms, settings }: Dialing) {
  const all = Object.entries({
    application_name: "sluice",
    // Postgres would compile a statement whose cost it guesses too high, which takes a hundred times as long as to run it.
    // It does so in every session, and for as long as a table of few rows has no statistics.
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
    // The sockets that it gets are encrypted already.
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
    // The driver only counts these. It requests another socket if a server was not of the kind in
    // `target_session_attrs`, and to reconnect; then no place is left.
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

/** Our own parser for every type, so that parameters are sent as they are and the driver guesses nothing. */
const types: Record<string, postgres.PostgresType> = Object.fromEntries(
  [...parsers].map(([type, parse]) => [`type_${type}`, { to: type, from: [type], serialize: String, parse }]),
);
