/**
 * One connection to a Postgres server, for as long as it lasts: when it is lost, it is lost, and a new one is another
 * value. The driver would connect anew by itself under the same handle; statements of a transaction would then reach a
 * session that knows nothing of it, a write at the wrong moment throws where nobody can catch it, and its pauses between
 * attempts grow to 20 s. Here a second connection is refused to it, and who needs one makes one.
 */
import { connect, type Socket } from "node:net";
import postgres from "postgres";
import type { Address } from "./address.ts";
import { DatabaseError } from "./database.ts";
import { parameter, parsers } from "./values.ts";

export interface Connection {
  /** Rows as objects, or as arrays of values. Statements are sent in the order of the calls. */
  run(text: string, params: readonly unknown[], form: "objects" | "arrays"): Promise<unknown[]>;
  /** Several statements without parameters; answers the name of the last command. */
  exec(text: string): Promise<string>;
  /** Statements that wait for an answer. */
  inFlight(): number;
  isLost(): boolean;
  /** Statements from now on may take so long; null: as long as was dialled for. */
  allow(statement_ms: number | null): void;
  /** Takes it for lost. */
  discard(): void;
  /** Waits so long for what is in flight. */
  end(wait_ms: number): Promise<void>;
}

export interface Dialing {
  address: Address;
  connect_ms: number;
  /** The server ends a statement that takes longer. Half as long again without a word, and the connection is lost. */
  statement_ms: number;
  /** Parameters of the session. */
  settings: Record<string, string | number>;
  /** Called once, also when it was never had; not after `end`. */
  lost?: () => void;
  notified?: (channel: string, payload: string) => void;
}

/** Connects with the first statement. All errors are DatabaseErrors. */
export function connectionTo(dialing: Dialing): Connection {
  const state = { isLost: false, isEnding: false, hasAnswered: false, statement_ms: dialing.statement_ms };
  /** How to fail each statement that waits. The driver leaves some waiting for ever when a connection is lost. */
  const waiting = new Set<(why: DatabaseError) => void>();
  const lose = (why = lost()) => {
    if (state.isLost) return;
    state.isLost = true;
    places.length = 0;
    for (const fail of waiting) fail(why);
    void sql.end({ timeout: 0 });
    if (!state.isEnding) dialing.lost?.();
  };
  /** Still to be tried. */
  const places = [...dialing.address.places];
  const sql = postgres(driverOptions(dialing, places, lose));

  function answer<T>(ask: () => PromiseLike<T>): Promise<T> {
    if (state.isLost) return Promise.reject(lost());
    return new Promise<T>((resolve, reject) => {
      const wait_ms = state.statement_ms * 1.5 + (state.hasAnswered ? 0 : dialing.connect_ms);
      const timer = setTimeout(
        () => lose(new DatabaseError(`the database did not answer within ${wait_ms} ms`, "silent")),
        wait_ms,
      );
      const over = () => {
        clearTimeout(timer);
        waiting.delete(fail);
      };
      const fail = (why: unknown) => {
        over();
        reject(failure(why));
      };
      waiting.add(fail);
      ask().then((result) => {
        over();
        state.hasAnswered = true;
        resolve(result);
      }, fail);
    });
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
      state.isEnding = true;
      await sql.end({ timeout: wait_ms / 1_000 });
      state.isLost = true;
    },
  };
}

// Without `simple: false` the driver sends a statement that has no parameters unprepared; its types do not know the option.
const prepared: postgres.UnsafeQueryOptions = Object.assign({ prepare: true }, { simple: false });

function lost(): DatabaseError {
  return new DatabaseError("the connection to the database was lost", "unavailable");
}

function failure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  if (error instanceof Error && "code" in error && losses.has(String(error.code))) return lost();
  // Without the driver's error as its cause: that one carries what was written, and logs print causes.
  if (error instanceof postgres.PostgresError) return new DatabaseError(error.message, error.code);
  return new DatabaseError(error instanceof Error ? error.message : String(error), "unavailable");
}

/** What the driver says of it, with an address that it does not know. */
const losses = new Set(["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "CONNECTION_ENDED"]);

function driverOptions(
  { address, connect_ms, statement_ms, settings, notified }: Dialing,
  places: Address["places"],
  lose: (why?: DatabaseError) => void,
): postgres.Options<Record<string, postgres.PostgresType>> {
  const options: postgres.Options<Record<string, postgres.PostgresType>> = {
    ...address.login,
    max: 1,
    max_lifetime: null,
    connect_timeout: connect_ms / 1_000,
    fetch_types: false,
    onnotice: () => {},
    onclose: () => lose(),
    types,
    connection: {
      application_name: "sluice",
      ...address.settings,
      TimeZone: "UTC",
      DateStyle: "ISO",
      bytea_output: "hex",
      statement_timeout: statement_ms,
      ...settings,
    },
  };
  // More that the driver has and its types do not name. It asks again for a socket when a server was not of the kind that
  // `target_session_attrs` asks for, and knows from its list of hosts that there may be another; and when it wants to
  // connect anew, for which no place is left then.
  return Object.assign(options, {
    host: places.map((place) => place.shown),
    port: places.map(() => 0),
    onnotify: notified,
    async socket() {
      try {
        return await dialled(places, connect_ms);
      } catch (error) {
        lose(failure(error));
        throw error;
      }
    },
  });
}

/** A socket to the first place that takes one; it and those before it are struck off. */
async function dialled(places: Address["places"], connect_ms: number): Promise<Socket> {
  let failed = new DatabaseError("no server there is of the kind that the address asks for", "unavailable");
  while (true) {
    const place = places.shift();
    if (!place) throw failed;
    try {
      return await socketTo(place, connect_ms);
    } catch (error) {
      failed = error instanceof DatabaseError ? error : failure(error);
    }
  }
}

function socketTo(place: Address["places"][number], connect_ms: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = "path" in place ? connect(place.path) : connect(place.port, place.host);
    const refuse = (why: string) => {
      socket.destroy();
      reject(new DatabaseError(`${place.shown} ${why}`, "unavailable"));
    };
    const timer = setTimeout(() => refuse(`did not answer within ${connect_ms} ms`), connect_ms);
    socket.setNoDelay(true);
    socket.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      refuse(reasons[error.code ?? ""] ?? `cannot be reached (${error.code ?? error.message})`);
    });
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("error");
      // Where the driver looks for the name that a certificate must bear.
      resolve("host" in place ? Object.assign(socket, { host: place.host }) : socket);
    });
  });
}

const reasons: Record<string, string> = {
  ECONNREFUSED: "refuses connections (ECONNREFUSED): is a Postgres running there?",
  ENOTFOUND: "is no known host (ENOTFOUND)",
};

/** Ours for every type, so that parameters are sent as they are and nothing is guessed. */
const types: Record<string, postgres.PostgresType> = Object.fromEntries(
  [...parsers].map(([type, parse]) => [`type_${type}`, { to: type, from: [type], serialize: String, parse }]),
);
