/** Listening to a server: one connection that has nothing else to do, and another one as soon as it is lost. */
import type { Connection } from "./connection.ts";

export interface ListenerOptions {
  make(hooks: { lost(): void; notified(channel: string, payload: string): void }): Connection;
  /** Between attempts to connect anew. */
  retry_ms: number;
}

export interface Listener {
  listen(channel: string, onMessage: (payload: string) => void, onConnect?: () => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

interface Ear {
  channel: string;
  onMessage: (payload: string) => void;
  onConnect?: () => void;
}

export function listenerOn({ make, retry_ms }: ListenerOptions): Listener {
  const ears = new Set<Ear>();
  let connection: Connection | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;

  function connected(): Connection {
    connection ??= make({
      lost() {
        connection = null;
        again();
      },
      notified(channel, payload) {
        for (const ear of ears) if (ear.channel === channel) ear.onMessage(payload);
      },
    });
    return connection;
  }

  /** Several failures in a row are one attempt. */
  function again(): void {
    clearTimeout(retry);
    if (isClosed || ears.size === 0) return;
    retry = setTimeout(async () => {
      for (const ear of [...ears]) {
        try {
          await hear(ear);
        } catch {
          // The connection tells that it is lost; where the statement alone failed, try that again.
          if (connection) again();
          return;
        }
      }
    }, retry_ms);
  }

  async function hear(ear: Ear): Promise<void> {
    await connected().exec(`listen ${named(ear.channel)}`);
    ear.onConnect?.();
  }

  return {
    async listen(channel, onMessage, onConnect) {
      const ear: Ear = { channel, onMessage, onConnect };
      // Before the server knows of it: the first message may come with its answer.
      ears.add(ear);
      try {
        await hear(ear);
      } catch (error) {
        ears.delete(ear);
        throw error;
      }
      return async () => {
        ears.delete(ear);
        const isLast = ![...ears].some((other) => other.channel === channel);
        if (isLast && connection && !isClosed) await connection.exec(`unlisten ${named(channel)}`).catch(() => {});
      };
    },
    async close() {
      isClosed = true;
      clearTimeout(retry);
      await connection?.end(0);
    },
  };
}

function named(channel: string): string {
  return `"${channel.replaceAll('"', '""')}"`;
}
