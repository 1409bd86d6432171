/**
 * How a command reaches the data, wherever they are: a database that DATABASE_URL names is opened; else a server that
 * holds the data folder is asked through its socket; else the embedded database of that folder is opened, and its lock
 * keeps everybody else out meanwhile. A command does not know which it was.
 */
import { type Management, management } from "../auth/administration.ts";
import type { OpenStore, Services } from "./services.ts";
import { socketManagement } from "./socket.ts";

/** A server that has just been started holds the lock before it opens its socket: so long, a command waits for it. */
const socket_wait_ms = 3000;
const socket_poll_ms = 100;

export async function reached<T>(services: Services, work: (manage: Management) => Promise<T>): Promise<T> {
  const storage = services.storage();
  const asked = () =>
    storage.databaseUrl ? null : socketManagement({ dataDir: storage.dataDir, actor: actorOf(services) });
  const running = await asked();
  if (running) return work(running);
  let store: OpenStore;
  try {
    store = await services.openStore(storage);
  } catch (cause) {
    const late = storage.databaseUrl ? null : await appearing(asked);
    if (late) return work(late);
    throw cause;
  }
  try {
    return await work(overStore(services, store));
  } finally {
    await store.close();
  }
}

/** Who does it, as the audit log names them. */
export function actorOf(services: Services): string {
  return `cli:${services.user.replace(/[^\w.@+-]/g, "_").slice(0, 64) || "unknown"}`;
}

function overStore(services: Services, store: OpenStore): Management {
  return management({
    administration: store.administration,
    catalog: async () => {
      const { catalog } = await services.configuration();
      return { plans: [...catalog.plans.keys()], models: [...catalog.models.keys()] };
    },
    actor: actorOf(services),
    nowMs: services.nowMs,
    newUuid: services.newUuid,
    random: services.random,
    changed: store.changed,
  });
}

async function appearing(asked: () => Promise<Management | null> | null): Promise<Management | null> {
  for (let waited_ms = 0; waited_ms < socket_wait_ms; waited_ms += socket_poll_ms) {
    const found = await asked();
    if (found) return found;
    await Bun.sleep(socket_poll_ms);
  }
  return null;
}
