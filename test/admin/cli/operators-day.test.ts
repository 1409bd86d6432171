/**
 * An operator's day, from another machine: five organizations, three teams and twenty keys with budgets, by the commands
 * over HTTP alone; a key that leaked, a plan that is lowered, a customer who does not pay, one who leaves, one with a new
 * name; and in the evening a report that equals the receipts to the unit.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Money } from "../../../src/core/inference/money.ts";
import { freePort } from "../../harness/daemon.ts";
import { model, type Service, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { until } from "../../harness/until.ts";
import { type Shell, shell } from "./shell.ts";

setDefaultTimeout(180_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-day-"));
let service: Service;
let laptop: Shell;

beforeAll(async () => {
  const port = await freePort();
  service = await startService({ sluice: { env: { SLUICE_OPERATOR_PORT: String(port) } } });
  const { token } = await service.json<{ token: string }>("operator", "create", "ann", "--role", "admin");
  const never = () => Promise.reject(new Error("an operator has neither the database nor its file"));
  laptop = shell({
    now_ms: Date.now,
    environment: { SLUICE_SERVER: `http://127.0.0.1:${port}`, SLUICE_OPERATOR_TOKEN: token },
    ...{ openStore: never, configuration: never },
    storage: () => {
      throw new Error("nor the data folder");
    },
  });
});
afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Made {
  id: string;
  key: string;
  organization: string;
  version: number;
}

/** The charged amounts by the id of the key, from receipts alone. */
const receipts = new Map<string, string[]>();

async function infer(key: Pick<Made, "id" | "key">, tokens = 20): Promise<{ status: number; error?: Refused }> {
  const body = { model, messages: [{ role: "user", content: `[simulator: tokens=${tokens}] go` }], max_tokens: tokens };
  const response = await service.post("/v1/chat/completions", body, { key: key.key });
  const { error } = (await response.json()) as { error?: Refused };
  if (error) return { status: response.status, error };
  receipts.set(key.id, [...(receipts.get(key.id) ?? []), response.headers.get("x-service-request-id")!]);
  return { status: response.status };
}
interface Refused {
  code: string;
  message: string;
}
interface Standing {
  standing: { session: { used: Money } };
}

test("is done with commands over HTTP, and ends with a report that adds up to the receipts", async () => {
  const say = async (words: string | string[]) => {
    const answer = await laptop.typed(words);
    if (answer.code !== 0) throw new Error(`sluice ${words}: ${answer.err}`);
    return answer.out;
  };

  // Morning: a plan, and five organizations from a file that is kept in git.
  await say("plan create gold --limit session=0.004,month=0.09,concurrent_requests=16");
  const file = join(folder, "organizations.yaml");
  const organizations = ["acme", "globex", "initech", "umbrella", "hooli"];
  const entries = organizations.map(
    (slug) => `  ${slug}: { plan: gold, key_lifetime_max_days: 90, key_unused_max_days: 30 }`,
  );
  writeFileSync(file, ["organizations:", ...entries, "  umbrella-labs: { keeps_content: false }", ""].join("\n"));
  expect(await say(["apply", "-f", file, "--dry-run"])).toContain("Nothing was changed");
  expect(await say(["apply", "-f", file])).toContain("+ organization hooli");
  expect(await say(["apply", "-f", file])).toBe("Everything is as the file says.\n");

  // Three teams, and four keys for each organization, each with an owner, a label, a budget and the addresses from
  // which it may be used.
  await say("team create --org acme --name research --limit session=0.00014");
  await say("limit set team research session=0.00012 concurrent_requests=4 --keys --org acme");
  await say("team create --org acme --name product --limit month=0.05");
  await say("team create --org globex --name operations --limit concurrent_requests=8");
  const teams: Record<string, string[]> = { acme: ["research", "research", "product"], globex: ["operations"] };
  const keys: Made[] = [];
  for (const slug of organizations) {
    for (let index = 0; index < 4; index++) {
      const team = teams[slug]?.[index];
      const limit = slug === "umbrella" && index === 0 ? "session=0.000025" : "month=0.04";
      keys.push(
        (await laptop.json([
          ...["key", "create", "--org", slug, "--name", `app ${index}`, "--owner", `${slug}-${index}`],
          ...["--label", "stage=production", "--allow-from", "127.0.0.0/8,::/64", "--limit", limit, "--json"],
          ...(team ? ["--team", team] : []),
        ])) as unknown as Made,
      );
    }
  }
  expect(keys).toHaveLength(20);
  const of = (slug: string) => keys.slice(organizations.indexOf(slug) * 4, organizations.indexOf(slug) * 4 + 4);

  // Work: each key is used twice. Then one key and one team use up their limits, and others go on.
  for (const key of keys) for (let round = 0; round < 2; round++) expect((await infer(key)).status).toBe(200);
  const usedUp = async (key: Made, whose: string) => {
    let last = await infer(key, 100);
    for (let round = 0; round < 20 && !last.error; round++) last = await infer(key, 100);
    expect(last).toMatchObject({ status: 429, error: { limited_by: whose } });
  };
  await usedUp(of("umbrella")[0]!, "key");
  await usedUp(of("acme")[0]!, "key");
  await usedUp(of("acme")[1]!, "team");
  expect((await infer(of("acme")[3]!)).status).toBe(200);
  expect((await infer(of("umbrella")[1]!)).status).toBe(200);

  // A command shows which key is near a limit.
  const near = (await laptop.json("key list --over 40 --json")) as unknown as { id: string }[];
  expect(near.map(({ id }) => id)).toContain(of("umbrella")[0]!.id);
  expect(near.map(({ id }) => id)).not.toContain(of("umbrella")[1]!.id);

  // A key has leaked.
  const leaked = of("globex")[1]!;
  const fresh = (await laptop.json(`key rotate ${leaked.id} --grace 0s --json`)) as unknown as Made;
  await until(async () => (await infer(leaked)).error?.code === "revoked_api_key");
  expect((await infer({ id: leaked.id, key: fresh.key })).status).toBe(200);

  // The plan is lowered below what an organization has used: its requests are refused, and those of another go on.
  const used = (await laptop.json("usage show acme --json")) as unknown as Standing["standing"];
  const less = (await laptop.json("usage show initech --json")) as unknown as Standing["standing"];
  expect(nanosOf(used.session.used)).toBeGreaterThan(nanosOf(less.session.used));
  await say(`plan update gold --limit session=${used.session.used.amount}`);
  await until(async () => {
    const { error } = await infer(of("acme")[3]!, 1);
    return (error as { limited_by?: string } | undefined)?.limited_by === "organization";
  });
  expect((await infer(of("initech")[0]!, 1)).status).toBe(200);
  await say("org plan acme unlimited");
  await until(async () => (await infer(of("acme")[3]!)).status === 200);

  // One organization does not pay, one leaves, and one gets a new name.
  await say("org suspend initech");
  await until(async () => (await infer(of("initech")[0]!)).error?.code === "organization_suspended");
  expect((await laptop.typed("org close hooli")).err).toContain("--yes");
  await say("org close hooli --yes");
  await until(async () => (await infer(of("hooli")[0]!)).error?.code === "revoked_api_key");
  await say("organization rename globex --slug globex-eu");
  expect((await laptop.typed("org show globex")).err).toContain("renamed to 'globex-eu'");
  expect((await infer(of("globex")[0]!)).status).toBe(200);
  const apply = await laptop.typed(["apply", "-f", file, "--dry-run"]);
  expect([apply.code, apply.err]).toEqual([1, expect.stringContaining("called 'globex-eu' now")]);

  // Evening: the exact report for finance, which includes the closed, the suspended and the renamed organization.
  const charged = new Map<string, number>();
  for (const [id, requests] of receipts) {
    for (const request of requests) {
      const { cost, outcome } = (await laptop.json(`request show ${request} --json`)) as unknown as {
        cost: { charged: Money };
        outcome: string;
      };
      expect(outcome).toBe("completed");
      charged.set(id, (charged.get(id) ?? 0) + nanosOf(cost.charged));
    }
  }
  const report = (await laptop.json("usage report --by organization,key --json")) as unknown as {
    rows: { organization: string; key_id: string; cost: { total: Money } }[];
    total: { cost: { total: Money } };
    running: { requests: number };
  };
  expect(new Map(report.rows.map(({ key_id, cost }) => [key_id, nanosOf(cost.total)]))).toEqual(charged);
  expect(nanosOf(report.total.cost.total)).toBe([...charged.values()].reduce((sum, nanos) => sum + nanos, 0));
  expect(report.running.requests).toBe(0);
  expect(new Set(report.rows.map(({ organization }) => organization))).toEqual(
    new Set(["acme", "globex-eu", "initech", "umbrella", "hooli"]),
  );
  // Each team is charged for its own keys.
  const teamOf = new Map(
    organizations.flatMap((slug) => of(slug).map(({ id }, index) => [id, teams[slug]?.[index] ?? null])),
  );
  const paid = new Map<string, number>();
  for (const { organization, key_id } of report.rows) {
    const payer = JSON.stringify([organization, teamOf.get(key_id)]);
    paid.set(payer, (paid.get(payer) ?? 0) + charged.get(key_id)!);
  }
  const byTeam = (await laptop.json("usage report --by organization,team --json")) as unknown as {
    rows: { organization: string; team: string | null; cost: { total: Money } }[];
  };
  const told = byTeam.rows.map(
    ({ organization, team, cost }) => [JSON.stringify([organization, team]), nanosOf(cost.total)] as const,
  );
  expect(new Map(told)).toEqual(paid);
  expect((await laptop.typed("usage check --full")).code).toBe(0);

  // The audit log shows who did all that: one operator, from one address, in a chain that was not changed.
  expect(await say("audit verify")).toContain("are as they were written");
  const log = (await laptop.json("audit list --limit 1000 --json")) as unknown as { actor: string; action: string }[];
  const mine = log.filter(({ actor }) => actor === "operator:ann");
  expect(mine.filter(({ action }) => action === "key.create")).toHaveLength(20);
  expect(new Set(mine.map(({ action }) => action))).toContain("organization.close");
});
