/**
 * How a command reaches the data, wherever they are: a database that DATABASE_URL names is opened; else a server that
 * holds the data folder is asked through its socket; else the embedded database of that folder is opened, and its lock
 * keeps everybody else out meanwhile. A command does not know which it was.
 */
import { type Management, management } from "../auth/administration.ts";
import type { StorageSettings } from "../config/configuration.ts";
import type { OpenStore, Services } from "./services.ts";
import { socketManagement } from "./socket.ts";

/**
 * How long a command waits for a data folder that is in use and has no open door: a server that has just been started
 * opens its socket last, and another command is done in a moment.
 */
const busy_wait_ms = 5000;
const busy_poll_ms = 50;

export async function reached<T>(services: Services, work: (manage: Management) => Promise<T>): Promise<T> {
  const storage = services.storage();
  const deadline_ms = performance.now() + busy_wait_ms;
  for (;;) {
    const running = await runningServer(services, storage);
    if (running) return work(running);
    const store = await opened(services, storage, performance.now() < deadline_ms);
    if (!store) {
      await Bun.sleep(busy_poll_ms);
      continue;
    }
    try {
      return await work(overStore(services, store));
    } finally {
      await store.close();
    }
  }
}

/** The server that holds the data folder, where there is one; a database of its own has none to ask. */
export async function runningServer(services: Services, storage: StorageSettings): Promise<Management | null> {
  if (storage.databaseUrl) return null;
  return socketManagement({ dataDir: storage.dataDir, actor: actorOf(services) });
}

/** Null when the data folder is in use and there is time to ask again. */
async function opened(services: Services, storage: StorageSettings, mayWait: boolean): Promise<OpenStore | null> {
  try {
    return await services.openStore(storage);
  } catch (cause) {
    const isBusy = cause instanceof Error && "code" in cause && cause.code === "in_use";
    if (isBusy && mayWait) return null;
    throw cause;
  }
}

/** Who does it, as the audit log names them. */
function actorOf(services: Services): string {
  return `cli:${services.user.replace(/[^\w.@+-]/g, "_").slice(0, 64) || "unknown"}`;
}

function overStore(services: Services, store: OpenStore): Management {
  return management({
    administration: store.administration,
    ledger: store.ledger,
    refused: store.refused,
    catalog: async () => {
      const { catalog } = await services.configuration();
      return { plans: catalog.plans, models: [...catalog.models.keys()] };
    },
    actor: actorOf(services),
    nowMs: services.nowMs,
    newUuid: services.newUuid,
    random: services.random,
    changed: store.changed,
  });
}
