/**
 * A command in a folder where no server has run reports on stderr, once, that it creates an embedded database there.
 */
import { expect, test } from "bun:test";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { shortLived } from "../../harness/short-lived.ts";
import { program } from "../../harness/sluice.ts";

/** Runs `org list` with the data folder `data` below this folder. */
async function list(folder: string) {
  const env = { PATH: process.env.PATH ?? "", HOME: folder, SLUICE_DATA_DIR: join(folder, "data"), ...shortLived };
  const run = Bun.spawn([...program, "org", "list", "--json"], { env, stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited]);
  return { stdout, stderr, code };
}

test("a command that creates an embedded database says so on stderr, once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-first-"));
  try {
    const first = await list(folder);
    expect(first.stderr).toContain(`created an embedded database in ${join(folder, "data")}; DATABASE_URL is not set`);
    const second = await list(folder);
    expect(second).toEqual({ ...first, stderr: "" });
    expect(first.code).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);

test.skipIf(process.getuid?.() !== 0)(
  "root makes no file in the embedded database of another user",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-first-"));
    const data = join(folder, "data");
    try {
      mkdirSync(data);
      chownSync(data, 65534, 65534);
      const refused = {
        code: 1,
        stderr: expect.stringContaining("Start the server, through which root's commands go"),
      };
      expect(await list(folder)).toMatchObject(refused);
      expect(readdirSync(data)).toEqual([]);
      mkdirSync(join(data, "postgres"));
      chownSync(join(data, "postgres"), 65534, 65534);
      chownSync(data, 0, 0);
      expect(await list(folder)).toMatchObject(refused);
      expect(readdirSync(join(data, "postgres"))).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  60_000,
);
