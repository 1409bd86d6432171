/**
 * Connects to a host at the first of its addresses that answers. An address that neither answers nor refuses holds
 * nobody up: after a quarter of a second the next one is tried beside it (RFC 8305, Happy Eyeballs).
 */

/** The longest time for which an address is tried alone. */
const alone_ms_max = 250;
/**
 * How long an address that was silent while another answered is tried last: each try leaves a socket that the system
 * has to time out.
 */
const silent_ms = 60_000;

/** The addresses of a host that were silent while another answered, with the instant until which they are tried last. */
export type SilentAddresses = Map<string, number>;

interface Wait {
  silent: SilentAddresses;
  /** The time for all addresses together. */
  connect_ms: number;
  /** Whether nobody waits any more, so that no further address is tried. */
  isGivenUp(): boolean;
}

/** Resolves with the first connection, and closes all later ones. Rejects when all addresses have failed. */
export function firstConnection<Connection extends { close(): void }>(
  addresses: readonly string[],
  connect: (address: string) => Promise<Connection>,
  { silent, connect_ms, isGivenUp }: Wait,
): Promise<Connection> {
  const { promise, resolve, reject } = Promise.withResolvers<Connection>();
  for (const [address, until_ms] of silent) if (until_ms <= performance.now()) silent.delete(address);
  const untried = addresses.toSorted((one, other) => Number(silent.has(one)) - Number(silent.has(other)));
  /** The addresses that have neither answered nor failed. */
  const waiting = new Set<string>();
  const failures: unknown[] = [];
  let isMade = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function next(): Promise<void> {
    clearTimeout(timer);
    const address = isMade || isGivenUp() ? undefined : untried.shift();
    if (address === undefined) return;
    waiting.add(address);
    if (untried.length > 0) timer = setTimeout(next, Math.min(alone_ms_max, connect_ms / addresses.length));
    try {
      const connection = await connect(address);
      silent.delete(address);
      waiting.delete(address);
      if (isMade) connection.close();
      else for (const other of waiting) silent.set(other, performance.now() + silent_ms);
      isMade = true;
      resolve(connection);
    } catch (cause) {
      waiting.delete(address);
      failures.push(cause);
      if (untried.length > 0) void next();
      else if (waiting.size === 0)
        reject(failures.length === 1 ? cause : new AggregateError(failures, failures.map(String).join("; ")));
    }
  }

  void next();
  return promise;
}
