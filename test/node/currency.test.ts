/**
 * A node keeps the currency of its database: a reload or a start with another currency is refused, with an error that
 * names both.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gathered, program } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(90_000);

const refusal = "This database counts in USD; sluice.yaml says EUR.";

test("another currency than the database's is refused at a reload and at a start", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-currency-"));
  const write = (currency: string) =>
    writeFileSync(join(folder, "sluice.yaml"), `metering: { currency: ${currency} }\n`);
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: folder, PORT: "0" },
    ...{ SLUICE_DATA_DIR: join(folder, "data"), SLUICE_WARM_UP_MS: "0" },
  };
  const serve = () => {
    const child = Bun.spawn([...program, "serve"], { cwd: folder, env, stdout: "pipe", stderr: "pipe" });
    return { child, out: gathered(child.stdout), err: gathered(child.stderr) };
  };
  write("USD");
  const first = serve();
  try {
    await until(() => first.out.text().includes("serving on"), 60_000, "the node to serve");
    write("EUR");
    first.child.kill("SIGHUP");
    await until(() => first.err.text().includes("configuration_refused"), 10_000, "the refusal");
    expect(first.err.text()).toContain(refusal);
  } finally {
    first.child.kill("SIGTERM");
    await first.child.exited;
  }
  const second = serve();
  expect(await second.child.exited).toBe(1);
  await second.err.ended;
  expect(second.err.text()).toContain(refusal);
  rmSync(folder, { recursive: true, force: true });
});
