// A separate process for embedded.test.ts. `write FOLDER` opens the database, reports its number of rows, and then
// inserts rows endlessly, and reports each when it is confirmed. `open FOLDER` opens the database, reports its number
// of rows, and waits. `spin FOLDER` runs an endless loop in a thread, with a deadline.

import { writeSync } from "node:fs";
import { embeddedDatabase, exitAfter } from "../../../src/stores/postgres/embedded.ts";

async function main(mode: string, folder: string): Promise<void> {
  if (mode === "spin") {
    exitAfter(200, "it took too long");
    new Worker(URL.createObjectURL(new Blob(["for (;;);"], { type: "text/javascript" })));
    return;
  }
  const db = await embeddedDatabase(folder);
  if (mode === "open") {
    tell("open");
    setInterval(() => {}, 1000);
    return;
  }
  await db.exec("create table if not exists confirmed (n int primary key)");
  const [row] = await db.query<{ count: number; last: number }>(
    "select count(*)::int as count, coalesce(max(n), 0) as last from confirmed",
  );
  tell(`found ${row!.count} ${row!.last}`);
  for (let n = row!.last + 1; ; n++) {
    if (n % 10 === 0) {
      await db.transaction(async (tx) => {
        await tx.query("insert into confirmed values ($1)", [n]);
        await tx.exec("select 1");
      });
    } else {
      await db.query("insert into confirmed values ($1)", [n]);
    }
    tell(`${n}`);
  }
}

/** Writes the line synchronously, so that a kill loses no reported line. */
function tell(line: string): void {
  writeSync(1, `${line}\n`);
}

main(process.argv[2]!, process.argv[3]!).catch((error: unknown) => {
  writeSync(2, `${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
});
