/**
 * The key of the demo organization: printed on a terminal, else written to a file that only its owner can read, and
 * valid for a month.
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { management } from "../../src/admin/management/client.ts";
import { keyPattern } from "../../src/core/auth/credential.ts";
import { createDemo, welcomeText } from "../../src/node/welcome.ts";
import { shell } from "../admin/cli/shell.ts";
import { emptyLedger } from "../admin/management/empty-ledger.ts";
import { listKeys } from "../admin/management/lists.ts";
import { memoryDirectory } from "../core/auth/memory-directory.ts";
import { freePort } from "../harness/daemon.ts";
import { startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

const day_ms = 86_400_000;

async function welcomed(isTerminal: boolean, prepare: (file: string) => void = () => {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-welcome-"));
  const file = join(dataDir, "demo-key");
  prepare(file);
  const directory = memoryDirectory();
  const { catalog } = await shell().services.configuration();
  const manage = management({
    administration: directory,
    ...emptyLedger(),
    catalog: () => ({
      plans: catalog.plans,
      models: [...catalog.models.keys()],
      upstreams: [],
      billing: { currency: "USD", provider: "Sluice" },
    }),
    actor: "service",
    now_ms: () => directory.clock.now_ms,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
  });
  const now_ms = directory.clock.now_ms;
  const said = welcomeText(await createDemo({ manage, catalog, dataDir, now_ms, isTerminal }), "http://localhost:1");
  const [key] = await listKeys(manage, { organization: "demo" });
  const days = ((key?.expiresAt?.getTime() ?? 0) - directory.clock.now_ms) / day_ms;
  return { said: () => said, file, days, clean: () => rmSync(dataDir, { recursive: true }) };
}

test("a terminal shows it once, and no file has it", async () => {
  const { said, file, days, clean } = await welcomed(true);
  expect(said()).toMatch(new RegExp(`^ {2}${keyPattern}$`, "m"));
  expect([days, existsSync(file)]).toEqual([30, false]);
  clean();
});

test("an output that may be kept has only a command that reads it from a new file of mode 0600", async () => {
  const elsewhere = join(mkdtempSync(join(tmpdir(), "sluice-elsewhere-")), "file");
  for (const prepare of [
    () => {},
    (at: string) => {
      writeFileSync(at, "old");
      chmodSync(at, 0o644);
    },
    (at: string) => symlinkSync(elsewhere, at),
  ]) {
    const { said, file, days, clean } = await welcomed(false, prepare);
    expect(said()).not.toMatch(new RegExp(keyPattern));
    expect(said()).toContain(`$(cat '${file}')`);
    expect(readFileSync(file, "utf8")).toMatch(new RegExp(`^${keyPattern}\n$`));
    expect([statSync(file).mode & 0o777, days, existsSync(elsewhere)]).toEqual([0o600, 30, false]);
    clean();
  }
  rmSync(join(elsewhere, ".."), { recursive: true });
});

test("a service that was set up has no demo organization: it names the commands for the first one, until there is one", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-set-up-"));
  const starts = async () => {
    const node = await startSluice({ store: "pglite", dataDir, config: "log: { level: info }\n" });
    const said = node.stdout();
    const slugs = (await node.json<{ slug: string }[]>("org", "list")).map(({ slug }) => slug);
    await node.stop();
    return { said, slugs, hasKey: existsSync(join(dataDir, "demo-key")) };
  };
  const first = await starts();
  expect(first.said).toContain("sluice org create acme --plan pro\n");
  // The test harness has created an organization of its own.
  expect(first).toMatchObject({ slugs: ["test"], hasKey: false });
  expect((await starts()).said).not.toContain("organization");
  rmSync(dataDir, { recursive: true });
}, 60_000);

test("when the node is ready for the first time its key is in the file alone, and no request is refused", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-ready-"));
  const starting = startSluice({ store: "pglite", dataDir, env: { PORT: `${port}` } });
  const isReady = async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200;
  await until(isReady, 30_000, "the node to be ready");
  const key = readFileSync(join(dataDir, "demo-key"), "utf8").trim();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const models = (await (await fetch(`${url}/v1/models`, { headers })).json()) as { data: { id: string }[] };
  const body = JSON.stringify({ model: models.data[0]?.id, messages: [{ role: "user", content: "Hello" }] });
  const ask = async () => (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body })).status;
  expect(await Promise.all(Array.from({ length: 32 }, ask))).toEqual(Array(32).fill(200));
  const node = await starting;
  // The output of this node is a pipe, not a terminal.
  expect(node.stdout() + node.stderr()).not.toMatch(new RegExp(keyPattern));
  await node.stop();
  rmSync(dataDir, { recursive: true });
}, 60_000);
