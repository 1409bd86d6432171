import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/stores/postgres/database-error.ts";
import { keepUp, upkeepLimits } from "../../../src/stores/postgres/upkeep.ts";
import { until } from "../../harness/until.ts";

test("a checkpoint is written though the disk has no room for a vacuum", async () => {
  const said: string[] = [];
  const query = async <Row>(text: string) =>
    (text.includes("bytes") ? [{ bytes: 9_000_000 }] : [{ name: "public.usage_now" }]) as Row[];
  const upkeep = keepUp(
    {
      query,
      async exec(text) {
        said.push(text);
        if (text.startsWith("vacuum")) throw new DatabaseError("could not extend file", "53100");
      },
    },
    { ...upkeepLimits, every_ms: 1 },
  );
  await until(() => said.length >= 4, 5_000, "two rounds");
  await upkeep.stop();
  expect(said.slice(0, 4)).toEqual(["vacuum public.usage_now", "checkpoint", "vacuum public.usage_now", "checkpoint"]);
});
