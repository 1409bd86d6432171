// Changes of sliding rates that wait for the next call to Redis: changes of the same subject, entry and name are added
// up, and no others.
import { expect, test } from "bun:test";
import { type Change, waitingChanges } from "../../../src/stores/redis/waiting-changes.ts";

const change = (id: string, number: number, name: string, tokens: number): Change => ({
  organizationId: "org_1",
  subject: { id },
  number,
  name: name as Change["name"],
  requests: 1,
  tokens,
});

test("changes of one entry are one, and those of other subjects, entries and names stay apart", async () => {
  const sent: (readonly Change[])[] = [];
  const changes = waitingChanges({
    send: async (given) => void sent.push(given),
    wait_ms: 60_000,
    changes_max: 100,
  });
  const given = [
    change("one", 7, "a", -1),
    change("other", 7, "a", -10),
    change("one", 8, "a", -100),
    change("one", 7, "b", -1_000),
    change("one", 7, "a", -2),
  ];
  const over = given.map((one) => changes.add("org_1", [one]));
  await changes.flush();
  await Promise.all(over);
  expect(sent.flat().map(({ subject, number, name, tokens }) => [subject.id, number, String(name), tokens])).toEqual([
    ["one", 7, "a", -3],
    ["other", 7, "a", -10],
    ["one", 8, "a", -100],
    ["one", 7, "b", -1_000],
  ]);
});
