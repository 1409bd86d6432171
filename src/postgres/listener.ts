/**
 * Listens to a server on one connection that does nothing else, and on another one as soon as it is lost. The driver's
 * own `listen` reuses the connection that it has lost; connection.ts says why that must not happen.
 */
import { gathered } from "../time/gathered.ts";
import type { Connection } from "./connection.ts";
import type { Database } from "./database.ts";

export interface ListenerOptions {
  make(hooks: { lost(): void; notified(channel: string, payload: string): void }): Connection;
  /** The wait between attempts to reconnect. */
  retry_ms: number;
}

export interface Listener {
  listen: Database["listen"];
  close(): Promise<void>;
}

interface Ear {
  channel: string;
  onMessage: (payload: string) => void;
  onConnect: (() => void) | undefined;
}

export function listenerOn({ make, retry_ms }: ListenerOptions): Listener {
  const ears = new Set<Ear>();
  let connection: Connection | null = null;
  const again = gathered(async () => {
    try {
      for (const ear of [...ears]) await hear(ear);
      return null;
    } catch {
      return retry_ms;
    }
  });

  async function hear({ channel, onConnect }: Ear): Promise<void> {
    connection ??= make({
      lost() {
        connection = null;
        again.ask(retry_ms);
      },
      notified(from, payload) {
        for (const ear of ears) if (ear.channel === from) ear.onMessage(payload);
      },
    });
    await connection.exec(`listen "${channel.replaceAll('"', '""')}"`);
    onConnect?.();
  }

  return {
    async listen(channel, onMessage, onConnect) {
      const ear: Ear = { channel, onMessage, onConnect };
      // It is registered before the server is asked, because the first message may come with the answer.
      ears.add(ear);
      try {
        await hear(ear);
      } catch (error) {
        ears.delete(ear);
        throw error;
      }
      // The server still sends messages, which are ignored, until the connection ends.
      return async () => void ears.delete(ear);
    },
    async close() {
      const ended = again.stop();
      await connection?.end(0);
      await ended;
    },
  };
}
