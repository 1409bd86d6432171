// A standby that answers, beside its primary: connections that write go to the primary, and leave a standby to which a
// name has led them.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { type Pair, startPair } from "../../harness/replica.ts";
import type { Service } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { chat } from "./served.ts";

setDefaultTimeout(240_000);

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

const running = endedAfterEach();

async function nodeOn(url: string): Promise<Sluice> {
  const sluice = await startSluice({ store: "pglite", env: { DATABASE_URL: url } });
  running.push(() => sluice.stop().catch(() => {}));
  return sluice;
}

/** A URL with several servers, in this order. */
const urlOf = (servers: Service[], kind: string) =>
  `postgres://postgres@${servers.map(({ url }) => new URL(url).host).join()}/postgres?target_session_attrs=${kind}`;

for (const [kind, isStandby] of Object.entries({
  "read-write": false,
  primary: false,
  "read-only": true,
  standby: true,
  "prefer-standby": true,
})) {
  test(`of several servers one that is ${kind} is taken, also where the other one stands first`, async () => {
    for (const servers of [
      [pair.primary, pair.replica],
      [pair.replica, pair.primary],
    ]) {
      const db = await serverDatabase(urlOf(servers, kind));
      expect(await db.query("select pg_is_in_recovery() as is_standby")).toEqual([{ is_standby: isStandby }]);
      await db.close();
    }
  });
}

test("a node serves on the primary, though a standby that answers stands first", async () => {
  const sluice = await nodeOn(urlOf([pair.replica, pair.primary], "read-write"));
  expect((await chat(sluice)).status).toBe(200);
});
