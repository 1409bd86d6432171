import { migrate } from "../../db/migrate.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { ask } from "../../test/faults/stores.ts";
import { until } from "../../test/harness/until.ts";
import { has, type Incident, inHand, logs } from "./incident.ts";
import { asking, trickle } from "./load.ts";
import { type Site, sound } from "./site.ts";

const frozen: Incident = {
  what: "Postgres hangs",
  alerts: ["SluiceStorageUnavailable", "SluiceSettlementsWaiting", "SluiceNotReady"],
  async begin(site) {
    const { nodes, postgres } = site;
    const [first] = nodes;
    // These requests are admitted before Postgres hangs. They end while it hangs, so their usage cannot be recorded
    // then.
    for (let begun = 0; begun < 5; begun++)
      void asking(first, { model: sound, directives: "tps=20 tokens=200", stream: true });
    await inHand(site, first, 5);
    postgres.freeze();
    const load = trickle(first, { model: sound, directives: "tokens=4" }, 5);
    return {
      async signs() {
        const verbose = await first.verbose();
        const areCut = await has(
          site,
          'increase(store_statement_failures_total{store="postgres",fault="connection"}[20s]) > 0',
        );
        return {
          SluiceSettlementsWaiting: ["`ledger_unreachable` in the log", logs(first, "ledger_unreachable")],
          SluiceNotReady: ["/readyz?verbose says not_ready", verbose.includes("not_ready")],
          SluiceStorageUnavailable: [
            "*Failures* counts connection, and /readyz?verbose names the database",
            areCut && /database/.test(verbose) && verbose.includes("not_ready"),
          ],
        };
      },
      async mend() {
        postgres.thaw();
        await load.stop();
      },
    };
  },
};

const connectionsEnded: Incident = {
  what: "connections to Postgres are ended every second",
  alerts: ["SluiceConnectionsLost"],
  async begin(site) {
    const load = trickle(site.nodes[0], { model: sound, directives: "tokens=2" }, 5);
    const endAll = () =>
      ask(site.postgres.port, (db) =>
        db.query(`select pg_terminate_backend(pid) from pg_stat_activity
          where pid <> pg_backend_pid() and backend_type = 'client backend'`),
      ).catch(() => []);
    const timer = setInterval(() => void endAll(), 1000);
    return {
      signs: async () => ({
        SluiceConnectionsLost: [
          "*Opened and lost* for postgres",
          await has(site, 'increase(store_connections_lost_total{store="postgres"}[20s]) > 0'),
        ],
      }),
      async mend() {
        clearInterval(timer);
        await load.stop();
      },
    };
  },
};

const redisAway: Incident = {
  what: "Redis is away",
  alerts: ["SluiceConnectionsLost"],
  async begin(site) {
    const { nodes, redis } = site;
    const [first] = nodes;
    // The alert requires twenty lost connections. A node tries to connect only every two seconds, and the rule's
    // duration is cut to a thirtieth, so two more nodes are started.
    const more = await Promise.all([site.another(), site.another()]);
    const load = trickle(first, { model: sound, directives: "tokens=2" }, 5);
    await redis.kill();
    return {
      signs: async () => ({
        SluiceConnectionsLost: ["`redis_unreachable` in the log", logs(first, "redis_unreachable")],
      }),
      async mend() {
        await redis.start();
        await load.stop();
        for (const node of more) await node.kill();
      },
    };
  },
};

/**
 * The node cannot create the ledger's partition of the newest month, because a transaction holds a lock on the table. A
 * database of its own is used.
 */
const upkeepHindered: Incident = {
  what: "a transaction keeps the table of records while a month is to be made",
  alerts: ["SluicePartitionsBehind"],
  async begin(site) {
    const db = await own(site, "hindered");
    const [newest] = await db.query<{ name: string }>("select max(name) as name from usage_partitions()");
    await db.exec(`drop table ${newest!.name}`);
    const held = Promise.withResolvers<void>();
    let isOver = false;
    const locking = db.transaction(async (tx) => {
      await tx.exec("lock table usage_record in share update exclusive mode");
      held.resolve();
      // The transaction runs queries, because the product's own connections may not stay idle in a transaction.
      while (!isOver) await Bun.sleep(500).then(() => tx.query("select 1"));
    });
    await held.promise;
    const node = await site.another({ database: "hindered" });
    return {
      signs: async () => ({
        SluicePartitionsBehind: [
          "`usage_upkeep_put_off` or `usage_upkeep_failed` in the log",
          logs(node, "usage_upkeep_put_off", "usage_upkeep_failed"),
        ],
      }),
      async mend() {
        isOver = true;
        await locking;
        await db.close();
        await node.kill();
      },
    };
  },
};

/**
 * A user changes a total in the database. The node checks the ledger a minute after its start, and finds the
 * difference. A database of its own is used.
 */
const tampered: Incident = {
  what: "somebody changes a total in the database",
  alerts: ["SluiceLedgerMismatch"],
  async begin(site) {
    const db = await own(site, "tampered");
    const node = await site.another({ database: "tampered" });
    await asking(node, { model: sound, directives: "tokens=4" });
    const change = "update usage_now set used[1] = used[1] + 1000 where used[1] > 0 returning 1";
    await until(async () => (await db.query(change)).length > 0, 10_000, "something to be used");
    return {
      async signs() {
        const printed = await node.command("usage", "check");
        return { SluiceLedgerMismatch: ["`sluice usage check` shows the window", / session /.test(printed)] };
      },
      async mend() {
        await db.close();
        await node.kill();
      },
    };
  },
};

/** Uses a database of its own, in which somebody deletes the records of settlements that were confirmed. */
const forgetful: Incident = {
  what: "the database loses confirmed settlements",
  alerts: ["SluiceReceiptsLost"],
  async begin(site) {
    const db = await own(site, "forgetful");
    const node = await site.another({ database: "forgetful" });
    // A rise is seen only of a series that a scrape has seen before.
    const none = `usage_receipts_lost_total{instance="${node.target}"} == 0`;
    await until(() => has(site, none), 30_000, "a scrape of the node");
    await asking(node, { model: sound, directives: "tokens=4" });
    const deleted = "delete from usage_record returning 1";
    await until(async () => (await db.query(deleted)).length > 0, 10_000, "a record");
    return {
      signs: async () => ({ SluiceReceiptsLost: ["`receipts_lost` in the log", logs(node, "receipts_lost")] }),
      async mend() {
        await db.close();
        await node.kill();
      },
    };
  },
};

async function own({ postgres }: Pick<Site, "postgres">, name: string) {
  await ask(postgres.port, (db) => db.exec(`create database ${name}`));
  const db = await serverDatabase(`postgres://postgres@127.0.0.1:${postgres.port}/${name}`);
  await migrate(db);
  return db;
}

export const ofStores = { frozen, connectionsEnded, redisAway, upkeepHindered, tampered, forgetful };
