// When the embedded database fails for good, the process exits, so that a supervisor restarts it.

import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { within } from "../../src/core/time/cancellation.ts";
import { shortLived } from "../harness/short-lived.ts";
import { gathered } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(60_000);

test("a node whose embedded database has failed ends with code 1 within seconds, and a new start serves", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-failing-"));
  const started = () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "failing-database.ts")], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        PORT: "0",
        SLUICE_DATA_DIR: folder,
        SLUICE_WARM_UP_MS: "0",
        ...shortLived,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err] = [gathered(child.stdout), gathered(child.stderr)];
    const serving = until(() => out.text().includes("serving on"), 30_000, "the node to serve");
    return { child, out, err, serving };
  };
  const first = started();
  await first.serving;
  first.child.kill("SIGUSR2");
  expect(await within(first.child.exited, 20_000, "the node")).toBe(1);
  await first.err.ended;
  expect(first.err.text()).toContain('"event":"database_failed"');
  expect(first.err.text()).toContain("the embedded database has failed (torn page); see that its disk is not full");
  const second = started();
  await second.serving;
  second.child.kill("SIGTERM");
  expect(await second.child.exited).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});
