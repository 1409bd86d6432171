// A node with a console, and a company on it: 30 people in four teams with budgets, their keys and one of a service, and six
// weeks of requests to three models, on two engines of which one fails now and then.

import { idOf } from "../../../src/core/store/ids.ts";
import type { Admit, Settle } from "../../../src/core/store/ledger.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { admitOf, settleOf, storeOf } from "../../core/store/ledger-stores.ts";
import { type Chance, chanceOf } from "../../faults/chance.ts";
import { Browser } from "../../harness/browser.ts";
import { freePort } from "../../harness/daemon.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { startSluice } from "../../harness/sluice.ts";
import { newPerson } from "../management/world.ts";

export const models = ["qwen/qwen3-coder", "qwen/qwen3-32b", "meta-llama/llama-3.1-8b-instruct"] as const;
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;
const days = 45;
const firstNames =
  "Ada Ben Cleo Dan Eva Finn Gia Hal Ida Jan Kim Leo Mia Nils Ola Pia Quinn Rosa Sam Tess Uwe Vera Wim Xenia Yan Zoe Anton Berta Carl Dora";
/** With their budgets of a month. */
const teamsOf = { platform: "1900", research: "1500", product: "1250", support: "4000" } as const;

export interface Company {
  url: string;
  /** Of an operator who sees everything. */
  token: string;
  db: Awaited<ReturnType<typeof serverDatabase>>;
  people: { id: string; name: string; keyId: string }[];
  teams: Record<keyof typeof teamsOf, string>;
  /** A command, in the process of the test. */
  command(...words: string[]): Promise<unknown>;
  /** Reads from the interface of the console, as the operator. */
  read<Answer>(path: string): Promise<Answer>;
  close(): Promise<void>;
}

export async function startCompany(seed = 7): Promise<Company> {
  const { url: database, drop } = await migratedDatabase();
  const port = await freePort();
  const sluice = await startSluice({ env: { DATABASE_URL: database, SLUICE_CONSOLE_PORT: String(port) } });
  const db = await serverDatabase(database);
  const { token } = await sluice.json<{ token: string }>("operator", "create", "ann", "--role", "admin");
  const { id: organization } = await sluice.json<{ id: string }>(
    "org",
    "create",
    "acme",
    "--name",
    "Acme",
    "--plan",
    "unlimited",
    "--zone",
    "Europe/Berlin",
  );
  const teams = {} as Company["teams"];
  for (const [name, month] of Object.entries(teamsOf)) {
    const words = ["--org", "acme", "--name", name, "--limit", `month=${month}`];
    teams[name as keyof typeof teamsOf] = (await sluice.json<{ id: string }>("team", "create", ...words)).id;
  }
  // Somebody changed a limit, and changed it back.
  for (const month of ["2100", teamsOf.platform])
    await sluice.json("limit", "set", "team", "platform", "--org", "acme", `month=${month}`);
  const people: Company["people"] = [];
  for (const [at, name] of firstNames.split(" ").entries()) {
    const team = Object.keys(teamsOf)[at % 4]!;
    const id = await newPerson(db, `${name} Example`, { role: "member", organization: "acme", team });
    const words = ["--org", "acme", "--name", `${name}'s laptop`, "--person", id];
    people.push({
      id,
      name: `${name} Example`,
      keyId: (await sluice.json<{ id: string }>("key", "create", ...words)).id,
    });
  }
  // A person with a limit, so that it can be increased.
  await sluice.json("limit", "set", "person", people[11]!.id, "--org", "acme", "month=60");
  const agent = await sluice.json<{ id: string }>("key", "create", "--org", "acme", "--name", "nightly build");
  await history(db, organization, [...people.map(({ keyId }) => keyId), agent.id], chanceOf(seed));
  const url = `http://127.0.0.1:${port}`;
  const page = { url: new URL(url) };
  const session = new Browser();
  const { body } = await session.call(page, "/session/operator", { method: "POST", body: { token } });
  const secret = body!.secret as string;
  return {
    url,
    token,
    db,
    people,
    teams,
    command: (...words) => sluice.json(...words),
    read: async <Answer>(path: string) =>
      (await session.call(page, `/management/v1${path}`, { secret })).body as Answer,
    async close() {
      await sluice.stop();
      await db.close();
      await drop();
    },
  };
}

async function history(
  db: Company["db"],
  organization: string,
  keys: readonly string[],
  chance: Chance,
): Promise<void> {
  const store = await storeOf(db);
  const book = ledger(db, { recovery: "checkpoint" });
  const end_ms = Date.now();
  const begin_ms = Math.floor((end_ms - days * day_ms) / hour_ms) * hour_ms;
  for (let at_ms = begin_ms; at_ms < end_ms; at_ms += 20 * day_ms)
    await db.query("select usage_partition(usage_record_id($1))", [new Date(at_ms)]);
  for (let at_ms = begin_ms; at_ms < end_ms - 60_000; at_ms += hour_ms) {
    const served = hourOf(at_ms, organization, keys, chance);
    if (served.length === 0) continue;
    await store.setClock(new Date(at_ms));
    await book.run(served.map(({ admit }) => admit));
    await store.setClock(new Date(at_ms + 1000 + chance.below(30_000)));
    await book.run(served.map(({ settle }) => settle));
  }
  await store.setClock(null);
  await db.query("select usage_audit_read(1000000)");
  await book.adjust(idOf(Bun.randomUUIDv7(), "req_"), organization, "month", -1_250_000_000);
  await book.close();
}

/** Of an engine to a request that failed. */
export const engineText = "CUDA error: device-side assert triggered";

/** More by day than by night, little on weekends, and a little more each week. */
function hourOf(at_ms: number, organization: string, keys: readonly string[], chance: Chance) {
  const at = new Date(at_ms);
  const isOff = at.getUTCDay() % 6 === 0 || at.getUTCHours() < 7 || at.getUTCHours() > 17;
  const growth = 1 + (days - (Date.now() - at_ms) / day_ms) / days;
  const count = isOff ? chance.below(3) : Math.round((4 + chance.below(12)) * growth);
  return Array.from({ length: count }, (): { admit: Admit; settle: Settle } => {
    const place = Math.floor(keys.length * chance.next() ** 2);
    const requestId = idOf(Bun.randomUUIDv7(undefined, at_ms + chance.below(60_000)), "req_");
    const model = chance.pick([models[0], models[0], models[1], models[2]]);
    const admit = admitOf(organization, {
      requestId,
      keyId: keys[isOff ? keys.length - 1 - (place % 3) : place]!,
      model,
      inputNanos: 9_000_000_000,
      lease_ms: 100 * hour_ms,
    });
    const nanos = 1 + Math.floor(chance.next() ** 3 * (model === models[0] ? 8_000_000_000 : 1_500_000_000));
    return { admit, settle: settleOf(admit, nanos, endOf(chance)) };
  });
}

function endOf(chance: Chance): Partial<Settle> {
  const upstream = chance.pick(["simulator", "simulator", "spare"]);
  const outcome = chance.below(40) === 0 ? "failed" : chance.below(30) === 0 ? "cancelled" : "completed";
  const followed =
    chance.below(25) === 0
      ? [
          { upstream: "spare", outcome: chance.pick(["unreachable", "busy", "timeout"]), ms: 40 },
          { upstream, outcome: "answered", ms: 900 },
        ]
      : null;
  const tried =
    followed ?? (outcome === "failed" ? [{ upstream, outcome, status: 500, ms: 900, said: engineText }] : null);
  const route = {
    upstream,
    attempts: tried?.length ?? 1,
    firstPart_ms:
      outcome === "failed" ? null : 120 + Math.floor(chance.next() ** 4 * 4000) + (upstream === "spare" ? 300 : 0),
    ...(tried && { tried }),
  };
  const usage = {
    inputTokens: chance.below(20_000),
    cachedInputTokens: chance.below(60_000),
    cacheWriteTokens: 0,
    outputTokens: chance.below(3000),
    reasoningTokens: 0,
    source: "reported" as const,
  };
  const errorCode = outcome === "failed" ? chance.pick(["upstream_timeout", "upstream_unavailable"]) : null;
  return { outcome, errorCode, route, usage };
}
