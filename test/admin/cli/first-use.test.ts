/** A command in a folder where no server has run says what it creates there. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { shortLived } from "../../harness/short-lived.ts";
import { program } from "../../harness/sluice.ts";

test("a command that creates an embedded database says so on stderr, once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-first-"));
  const list = async () => {
    const env = { PATH: process.env.PATH ?? "", HOME: folder, SLUICE_DATA_DIR: join(folder, "data"), ...shortLived };
    const run = Bun.spawn([...program, "org", "list", "--json"], { env, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
    return { answer: JSON.parse(stdout) as unknown, stderr, code };
  };
  try {
    const first = await list();
    expect(first.stderr).toContain(`created an embedded database in ${join(folder, "data")}; DATABASE_URL is not set`);
    const second = await list();
    expect(second).toEqual({ ...first, stderr: "" });
    expect(first.code).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);
