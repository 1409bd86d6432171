// Two hundred requests at once (in `npm run test:deep` a thousand) against a limit that has room for exactly five, for
// each kind of subject and for all or some models: on three nodes of one Postgres, and on the embedded database.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { Admit } from "../../../src/core/store/ledger.ts";
import { type Book, ledger } from "../../../src/stores/postgres/ledger.ts";
import { databaseKinds, times } from "../../harness/depth.ts";
import { admitOf, answer_ms, expectBalanced, openLedger, type Store, settleOf, unlimited } from "./ledger-stores.ts";
import { house, limitModels, whose } from "./model-limits.ts";
import { setBudget } from "./subject-limits.ts";

setDefaultTimeout(60_000);

const requests = times(200, 1_000);
const model = "acme/large";
const all = "all models";
const patterns = [all, model, "acme/*"];
/** A limit with room for five requests, each of which holds a thousand nanos. */
const room = { ...noBudget, week: 5_999 };
const cases = databaseKinds(import.meta.path).flatMap((name) =>
  whose.flatMap((one) => patterns.map((pattern) => [name, one, pattern] as const)),
);

const opened = new Map<string, { store: Store; book: Book; nodes: Book[] }>();
beforeAll(async () => {
  for (const name of new Set(cases.map(([name]) => name))) {
    const { store, book } = await openLedger(name);
    const node = async () => ledger(await store.another(), { recovery: "checkpoint", answer_ms });
    opened.set(name, { store, book, nodes: await Promise.all([node(), node(), node()]) });
  }
});
afterAll(async () => {
  for (const { store, book, nodes } of opened.values()) {
    await expectBalanced(book);
    await Promise.all(nodes.map((one) => one.close()));
    await store.close();
  }
});

test.each(cases)(
  `on %s, against room for five of the %s for %s, five of ${requests} are admitted`,
  async (name, one, pattern) => {
    const { store, nodes } = opened.get(name)!;
    const { organization, key, ids } = await house(store);
    if (pattern !== all) await limitModels(store.db, ids.organization, ids[one], pattern, room);
    else if (one !== "organization")
      await setBudget(store.db, organization, ids[one], room, one === "key" ? ids.team : null);
    const limits = one === "organization" && pattern === all ? { ...unlimited, week: room.week } : unlimited;
    const asked = (of: string): Admit => ({ ...admitOf(organization, { limits }), keyId: key, model: of });
    const commands = Array.from({ length: requests }, () => asked(model));
    const size = requests / 50;
    const batches = Array.from({ length: 50 }, (_, at) => commands.slice(at * size, (at + 1) * size));
    const answers = (await Promise.all(batches.map((batch, at) => nodes[at % nodes.length]!.run(batch)))).flat();
    const granted = commands.filter((_, at) => answers[at]!.answer === "granted");
    expect(granted).toHaveLength(5);
    expect(answers.filter(({ answer }) => answer === "reserved")).toHaveLength(requests - 5);
    const [other] = await nodes[0]!.run([asked("other/small")]);
    expect(other!.answer as string).toBe(pattern === all ? "reserved" : "granted");
    await nodes[0]!.run(granted.map((admit) => settleOf(admit, 1_000)));
    expect(await nodes[1]!.run([asked(model)])).toMatchObject([{ answer: "exhausted" }]);
  },
);
