/** Two concurrent changes of a destination of notices: the later one starts from the result of the earlier one. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { whileLocked } from "../../harness/acts-waiting.ts";
import { worldForTests } from "./own-world.ts";

setDefaultTimeout(60_000);
const world = worldForTests();

test("of changes that name different members, both count", async () => {
  const { db, manage, acme } = world;
  const webhook = { organization: "acme", name: "webhook" };
  await manage.setNotices({ ...webhook, url: "https://hooks.example.com/sluice" });
  await whileLocked(db, acme, [
    () => manage.setNotices({ ...webhook, shares: [50, 90] }),
    () => manage.setNotices({ ...webhook, keyExpiryDays: 30 }),
  ]);
  expect(await manage.findNotices(webhook)).toMatchObject({ shares: [50, 90], keyExpiryDays: 30 });
});

test("a change after the removal makes nothing that has no address", async () => {
  const { db, manage, acme } = world;
  const webhook = { organization: "acme", name: "removed" };
  await manage.setNotices({ ...webhook, url: "https://hooks.example.com/sluice" });
  const [, change] = await whileLocked(db, acme, [
    () => manage.removeNotices(webhook),
    () => manage.setNotices({ ...webhook, keyExpiryDays: 30 }),
  ]);
  expect(change).toMatchObject({ status: "rejected", reason: { message: "Specify the webhook's URL." } });
  await expect(manage.findNotices(webhook)).rejects.toMatchObject({ code: "resource_not_found" });
});
