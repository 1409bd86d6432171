// Runs `sluice serve` on an embedded database that fails with a corruption error on every statement after SIGUSR2.

import { run } from "../../src/admin/cli/run.ts";
import { services } from "../../src/node/services.ts";
import { DatabaseError } from "../../src/stores/postgres/database-error.ts";
import { startDatabaseThread } from "../../src/stores/postgres/embedded-thread.ts";

const thread = startDatabaseThread(false);
let hasFailed = false;
process.on("SIGUSR2", () => {
  hasFailed = true;
});
const torn = () => Promise.reject(new DatabaseError("torn page", "XX001"));
const databaseThread: typeof thread = {
  ...thread,
  run: (...statement) => (hasFailed ? torn() : thread.run(...statement)),
  exec: (text) => (hasFailed ? torn() : thread.exec(text)),
};
process.exitCode = await run(["serve"], services(process.env, { databaseThread }));
process.exit();
