// Starts a node while many addresses send made-up keys, and uses valid keys that the node does not know yet. Measures
// the response to each valid key and how long it takes, in comparison with a node that is not attacked.

import { connect } from "node:net";
import { key_random_bytes, newKey, secretOf } from "../../src/core/auth/credential.ts";
import { idOf } from "../../src/core/store/ids.ts";
import { administration } from "../../src/stores/postgres/administration.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { unrestricted } from "../core/store/new-key.ts";
import { freePort } from "../harness/daemon.ts";
import { migratedDatabase } from "../harness/migrated-database.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { startForgers } from "./forging-addresses.ts";
import { headOf } from "./talk.ts";

export interface FirstUses {
  /** For each key, the status of its first request and how long it took. */
  uses: { status: string; ms: number }[];
  /** The time in milliseconds from when the node was ready until the last key got its response. */
  took_ms: number;
}

export interface Rounds {
  /** The first uses of keys on a node that is not attacked; null if they were not requested. */
  alone: FirstUses | null;
  attacked: FirstUses;
  /** The number of responses to the attackers, by status. */
  answered: Record<string, number>;
}

export interface Attackers {
  addresses: number;
  /** The requests per second from each address. */
  per_second: number;
  /** The address from which the valid keys are sent. */
  honestAddress: string;
  /** The failed authentications that one address may have in a minute; the default if absent. */
  failures_max?: number;
}

/**
 * Starts a node under an attack, and if `isCompared`, another one before the attack. Both use one database, with
 * different keys. Each key is used once.
 */
export async function firstUses(attackers: Attackers, keys: number, isCompared: boolean): Promise<Rounds> {
  const { addresses, per_second, honestAddress, failures_max = 300 } = attackers;
  const database = await migratedDatabase();
  const startNode = (port = 0): Promise<Sluice> =>
    startSluice({
      ...{ store: "pglite", env: { DATABASE_URL: database.url, PORT: String(port) }, dataDir: "unused" },
      config: `limits: { failed_authentications_per_minute: ${failures_max} }\n`,
    });
  try {
    const all = await madeKeys(database.url, 2 * keys);
    const alone = isCompared ? await used(await startNode(), all.slice(0, keys), honestAddress) : null;
    const port = await freePort();
    const forgers = await startForgers({ port, addresses, per_second });
    try {
      const attacked = await used(await startNode(port), all.slice(keys), honestAddress);
      return { alone, attacked, answered: forgers.answered() };
    } finally {
      await forgers.end();
    }
  } finally {
    await database.drop();
  }
}

/** Creates keys of one organization. */
async function madeKeys(url: string, count: number): Promise<string[]> {
  const db = await serverDatabase(url);
  try {
    const store = administration(db);
    const organizationId = idOf(Bun.randomUUIDv7(), "org_");
    await store.createOrganization({ id: organizationId, slug: "acme", name: "Acme", plan: null, actor: "test" });
    const made: string[] = [];
    for (let at = 0; at < count; at++) {
      const key = newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes)));
      made.push(key);
      await store.createKey({
        ...{ ...unrestricted, id: idOf(Bun.randomUUIDv7(), "key_"), organizationId, name: `key ${at}` },
        ...{ scopes: ["models:read"], secret: secretOf(key), actor: "test" },
      });
    }
    return made;
  } finally {
    await db.close();
  }
}

/**
 * Uses the keys one by one, a tenth of a second apart, as soon as the node is ready. They share one connection: how
 * fast new connections are accepted while thousands arrive depends on the operating system, and not on keys.
 */
async function used(node: Sluice, keys: readonly string[], localAddress: string): Promise<FirstUses> {
  const began_ms = performance.now();
  const connection = await keptConnection(Number(new URL(node.url).port), localAddress);
  try {
    const uses: FirstUses["uses"] = [];
    for (const key of keys) {
      const asked_ms = performance.now();
      const status = await connection.ask(key);
      uses.push({ status, ms: performance.now() - asked_ms });
      await Bun.sleep(100);
    }
    return { uses, took_ms: performance.now() - began_ms };
  } finally {
    connection.end();
    await node.stop();
  }
}

/**
 * Opens a connection that is reused. `ask` returns the status of the response, or `none` if the connection was closed.
 */
async function keptConnection(port: number, localAddress: string) {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  let text = "";
  let answered = (_status: string) => {};
  socket.on("data", (data) => {
    text += data.toString("latin1");
    if (/\r\n\r\n\{[\s\S]*\}$/.test(text)) answered(text.slice(9, 12));
  });
  socket.on("error", () => answered("none"));
  socket.on("close", () => answered("none"));
  await new Promise<void>((resolve) => socket.once("connect", resolve).once("close", resolve));
  return {
    ask(key: string): Promise<string> {
      text = "";
      const { promise, resolve } = Promise.withResolvers<string>();
      answered = resolve;
      socket.write(headOf("GET /v1/models", key));
      return promise;
    },
    end: () => void socket.destroy(),
  };
}

export function served({ uses }: FirstUses): number {
  return uses.filter(({ status }) => status === "200").length;
}

export function p50_ms({ uses }: FirstUses): number {
  return uses.map(({ ms }) => ms).toSorted((one, other) => one - other)[Math.floor(uses.length / 2)]!;
}
