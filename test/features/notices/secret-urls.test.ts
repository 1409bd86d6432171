/** The URL of a channel is a secret: it is stored encrypted, and no output, response or log line contains it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { type Channel, slackChannel, teamsChannel } from "../../harness/channels.ts";
import { type Service, startService } from "../../harness/engine.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";

setDefaultTimeout(120_000);

const secretKey = Buffer.from(new Uint8Array(32).fill(9)).toString("base64");
let slack: Channel;
let teams: Channel;
let service: Service;
let database: Awaited<ReturnType<typeof migratedDatabase>>;
beforeAll(async () => {
  [slack, teams] = [slackChannel(), teamsChannel()];
  database = await migratedDatabase();
  service = await startService({
    more: "webhooks: { allow_private: true }",
    sluice: {
      // The log is searched for these texts at the end.
      secrets: [slack.secret, teams.secret],
      env: { SLUICE_SECRET_KEY: secretKey, DATABASE_URL: database.url },
    },
  });
});
afterAll(async () => {
  await service?.stop();
  await database?.drop();
  slack?.stop();
  teams?.stop();
});

const printed: string[] = [];
async function sluice(...words: string[]) {
  const ran = await service.json(...words).then(
    (answer) => ({ code: 0, said: JSON.stringify(answer) }),
    // The harness puts the command line before its output; it is removed here.
    (refusal: Error) => ({ code: 1, said: refusal.message.split(" answered 1: ").at(-1)! }),
  );
  printed.push(ran.said);
  return ran;
}

/** Every row of every table, as text. */
async function dumped(): Promise<string> {
  const db = await serverDatabase(database.url);
  const tables = await db.query<{ name: string }>(
    `select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  );
  const rows = await Promise.all(
    tables.map(({ name }) => db.query<{ row: string }>(`select t::text as row from ${name} t`)),
  );
  await db.close();
  expect(tables.length).toBeGreaterThan(30);
  return rows
    .flat()
    .map(({ row }) => row)
    .join("\n");
}

test("a channel is set, tested, shown and removed by its host alone", async () => {
  const { organization } = service;
  const slackSet = ["notice", "set", organization, "--name", "ops", "--form", "slack", "--url", slack.url];
  const host = new URL(slack.url).host;
  expect(await sluice(...slackSet)).toMatchObject({ code: 0, said: expect.stringContaining(host) });
  expect((await sluice("notice", "set", "--name", "fleet", "--form", "teams", "--url", teams.url)).code).toBe(0);
  const tested = await service.cli("notice", "test", organization, "--name", "ops");
  expect(tested).toEqual({ code: 0, stdout: `A test arrived at ${host}.\n`, stderr: "" });
  expect((await sluice("notice", "test", "--name", "fleet")).code).toBe(0);
  expect(slack.got.map(({ title }) => title)).toEqual([`A test of notices of ${organization}`]);
  expect(teams.got.map(({ title }) => title)).toEqual(["A test of notices of the fleet"]);
  const gone = `${new URL(slack.url).origin}/services/gone/${slack.secret}`;
  await sluice("notice", "set", organization, "--name", "gone", "--form", "slack", "--url", gone);
  const failed = await sluice("notice", "test", organization, "--name", "gone");
  expect(failed).toMatchObject({ code: 1, said: expect.stringContaining("The test did not arrive: it answered 404") });
  for (const words of [["notice", "list"], ["export"]]) {
    const { stdout, stderr } = await service.cli(...words);
    printed.push(stdout, stderr);
  }
  for (const words of [
    ["notice", "set", organization, "--name", "ops", "--form", "teams", "--url", slack.url],
    ["notice", "set", organization, "--name", "ops", "--url", `${slack.url} and more`],
    ["notice", "set", organization, "--name", "OPS!", "--url", slack.url],
    ["notice", "set", organization, "--name", "ops", "--url", slack.url.replace("//", "//user@")],
  ])
    expect((await sluice(...words)).code).toBe(1);
  for (const words of [
    ["notice", "list", "--undelivered", "--org", organization],
    ["notice", "show", organization, "--name", "ops"],
    ["audit", "list"],
    ["config", "show"],
  ])
    expect((await sluice(...words)).code).toBe(0);
  const dump = await dumped();
  expect(dump).toContain(host);
  expect((await sluice("notice", "remove", organization, "--name", "ops")).code).toBe(0);
  const everything = [...printed, dump, await dumped(), service.stderr(), service.stdout()].join("\n");
  expect(everything).toContain("notice.set");
  for (const { secret } of [slack, teams]) expect(everything).not.toContain(secret);
});

test("without SLUICE_SECRET_KEY no channel is set, and without smtp no mail; the refusals say what to do", async () => {
  const here = await startService();
  const set = (...words: string[]) => here.json("notice", "set", here.organization, ...words);
  const channel = await set("--name", "ops", "--form", "slack", "--url", slack.url).catch(String);
  const mail = await set("--name", "mail", "--form", "mail", "--to", "a@x.test").catch(String);
  await set("--url", "https://hooks.example.com/sluice");
  const { stdout: examined } = await here.cli("doctor");
  await here.stop();
  expect(examined).toContain("secrets of webhooks are in the database in plain text");
  expect(examined).not.toContain("no notices are sent there");
  expect(channel).toContain("set SLUICE_SECRET_KEY first");
  // The harness puts the command line before the command's output.
  expect(String(channel).split(" answered 1: ").at(-1)).not.toContain(slack.secret);
  expect(mail).toContain("This service sends no mail. An operator sets smtp in sluice.yaml first.");
});
