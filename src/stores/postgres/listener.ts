/**
 * Listens to a server on a connection that does nothing else, and opens a new connection as soon as that one is lost.
 * The driver's own `listen` would reuse the lost connection; connection.ts says why that must not happen.
 */
import { gathered } from "../../core/time/clock.ts";
import type { DatabaseConnection } from "./connection.ts";
import type { Database } from "./database.ts";

interface ListenerOptions {
  make(hooks: { lost(): void; notified(channel: string, payload: string): void }): DatabaseConnection;
  /** The wait between two attempts to connect again. */
  retry_ms: number;
}

export interface Listener {
  listen: Database["listen"];
  close(): Promise<void>;
}

interface Subscription {
  channel: string;
  onMessage: (payload: string) => void;
  onConnect: (() => void) | undefined;
}

export function listenerOn({ make, retry_ms }: ListenerOptions): Listener {
  const subscriptions = new Set<Subscription>();
  let connection: DatabaseConnection | null = null;
  const again = gathered(async () => {
    try {
      for (const one of [...subscriptions]) await subscribe(one);
      return null;
    } catch {
      return retry_ms;
    }
  });

  async function subscribe({ channel, onConnect }: Subscription): Promise<void> {
    connection ??= make({
      lost() {
        connection = null;
        again.ask(retry_ms);
      },
      notified(from, payload) {
        for (const one of subscriptions) if (one.channel === from) one.onMessage(payload);
      },
    });
    await connection.exec(`listen "${channel.replaceAll('"', '""')}"`);
    onConnect?.();
  }

  return {
    async listen(channel, onMessage, onConnect) {
      const subscription: Subscription = { channel, onMessage, onConnect };
      // Registered before the statement is sent, because the first message may come with the answer.
      subscriptions.add(subscription);
      try {
        await subscribe(subscription);
      } catch (error) {
        subscriptions.delete(subscription);
        throw error;
      }
      // The server keeps sending messages until the connection ends; they are ignored.
      return async () => void subscriptions.delete(subscription);
    },
    async close() {
      const ended = again.stop();
      await connection?.end(0);
      await ended;
    },
  };
}
