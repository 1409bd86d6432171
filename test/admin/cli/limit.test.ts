// Tests of `sluice limit`: which subject its arguments name, and the format of limits in input and output. Also tests
// that every command accepts a person's ID or verified address.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { instantTyped } from "../../../src/admin/cli/limit.ts";
import { cameIn, newMember } from "../../harness/members.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { type Shell, shellOn } from "./shell.ts";

setDefaultTimeout(60_000);
let cli: Shell;
let ann: string;
let owned: Awaited<ReturnType<typeof openDatabase>>;

beforeAll(async () => {
  owned = await openDatabase();
  cli = shellOn(owned.db);
  for (const words of [
    "org create acme --plan unlimited",
    "team create --org acme --name research",
    "team create --org acme --name twice",
    "key create --org acme --name build",
    "key create --org acme --name twice",
  ])
    expect(await cli.typed(words)).toMatchObject({ code: 0 });
  ann = await newMember(owned.db, "ann", { organization: "acme", team: "research" });
  await cameIn(owned.db, { subject: "eve", isEmailVerified: false });
  await cameIn(owned.db, { subject: "bo-1", email: "bo@example.com" });
  await cameIn(owned.db, { subject: "bo-2", email: "BO@example.com" });
});
afterAll(() => owned.drop());

test("words mean what has that name, in the organization that is named or the only one", async () => {
  for (const [words, subject, month] of [
    ["team research", "team", "50"],
    ["research", "team", "51"],
    ["key build --org acme", "key", "5"],
    ["build", "key", "6"],
    ["person ann", "person", "7"],
    ["ann@example.com", "person", "8"],
    [ann, "person", "9"],
    ["org acme", "organization", "90"],
    ["organization acme", "organization", "91"],
    ["org", "organization", "92"],
  ] as const) {
    const set = await cli.json(`limit set ${words} month=${month} --json`);
    expect([words, set]).toMatchObject([words, { subject, own: { month: { amount: `${month}.000000000` } } }]);
    expect(await cli.json(`limit show ${words} --json`)).toMatchObject({
      subject_id: set.subject_id,
      own: set.own as object,
    });
  }
});

test("words that mean nothing, or several things, are refused with what to say instead", async () => {
  for (const [words, code, says] of [
    ["limit show twice", 1, "'twice' names 2 things: team team_"],
    ["limit show twice", 1, "Put its kind before the name, as in: team twice"],
    ["limit show nobody", 1, "nothing called 'nobody'"],
    ["limit show team nobody --org acme", 1, "no team 'nobody' in acme"],
    ["limit show team", 1, "name the team"],
    ["limit show team research now", 1, "in two words"],
    ["limit set research", 2, "what to set, such as month=50"],
    ["limit set research day=5", 2, "The limits are: session, week, month"],
    ["limit set research month=much", 2, "an amount such as 50 or 0.25, none, or inherit"],
    ["limit set research month=-5", 2, "an amount such as 50"],
    ["limit set research concurrent_requests=0.5", 2, "a whole number such as 60 or 200k"],
    ["limit set research month=5EUR", 1, "is in EUR, and this service counts in USD"],
    ["limit set research month=1000001", 1, "at most $1,000,000.00; for no limit, say none"],
    ["limit set research month=5 --keys --members", 2, "one of --keys, --members and --models"],
    ["limit set key build week=1 --keys", 1, "A key has no 'keys'"],
    ["limit set research month=5 --models nothing/here", 1, "no model 'nothing/here'"],
    ["limit raise research month=60", 2, "until when"],
  ] as const) {
    const seen = await cli.typed(words);
    expect([words, seen.code, seen.err]).toEqual([words, code, expect.stringContaining(says)]);
  }
});

test("a name that nobody has is in the command that looks for it, whatever a shell would make of it", async () => {
  const seen = await cli.typed(["limit", "show", "it's $HOME"]);
  expect(seen.err).toEndWith(`see: sluice search 'it'\\''s $HOME'\n`);
});

test("thousands, none and inherit are typed as they are said, and what is left out stays", async () => {
  const set = async (words: string) => (await cli.json(`limit set team research ${words} --json`)).own;
  await cli.json("limit set team research month=50 --json");
  expect(await set("tokens_per_minute=200k requests_per_minute=60,session=none")).toMatchObject({
    ...{ month: { amount: "50.000000000" }, tokens_per_minute: 200_000, requests_per_minute: 60, session: "none" },
  });
  expect(await set("tokens_per_minute=2M session=inherit")).toMatchObject({
    ...{ tokens_per_minute: 2_000_000, session: null, month: { amount: "50.000000000" } },
  });
  expect(await set("month=0.25USD")).toMatchObject({ month: { amount: "0.250000000", currency: "USD" } });
});

test("a limit for models, what others get, and a raise are shown with where each limit comes from", async () => {
  await cli.json("limit set team research month=50 --json");
  await cli.json(["limit", "set", "team", "research", "month=10", "--models", "acme/*", "--json"]);
  await cli.json("limit set team research week=5 --members --json");
  await cli.json("limit raise team research month=80 --until 2099-01-01 --json").catch(() => {});
  const friday = await cli.json("limit raise team research month=80 --until friday --json");
  expect(friday.raises).toMatchObject([{ limits: { month: { amount: "80.000000000" } } }]);
  const { out } = await cli.typed("limit show team research");
  for (const line of [
    /^team +research \(team_[0-9a-f]{32}\)$/m,
    /^month +\$80\.00 \(temporary increase\)$/m,
    /^concurrent_requests +not limited$/m,
    /^each person gets +week \$5\.00$/m,
    /^for acme\/\* +month \$10\.00$/m,
    /^month used for acme\/\* +0 %: \$0\.00 of \$10\.00; resets .* UTC$/m,
    /^temporary increase +month \$80\.00, until .* UTC \(cli:ann\)$/m,
  ])
    expect(out).toMatch(line);
  expect(await cli.json("limit show team research --json")).toMatchObject({
    model_standings: { "acme/*": { month: { used: { amount: "0.000000000" }, limit: { amount: "10.000000000" } } } },
  });
  expect((await cli.typed("limit show team research --model other/model")).out).not.toContain("for acme/*");
  expect((await cli.typed("limit show ann")).out).toMatch(/^week +\$5\.00 \(from its team\)$/m);
  expect((await cli.typed("limit show org acme --of teams")).out).toMatch(
    /research .*month \$80\.00 \(temporary increase\)/,
  );
  expect((await cli.json("limit raise team research --end --json")).raises).toEqual([]);
});

test("a prefix of models that nobody serves is set for models to come, and said with the one that was perhaps meant", async () => {
  const { out, code } = await cli.typed(["limit", "set", "key", "build", "month=3", "--models", "acne/*"]);
  expect(code).toBe(0);
  expect(out).toMatch(/^for acne\/\* +month \$3\.00$/m);
  const warning = "'acne/*' matches no model today, so its limits wait for one; did you mean 'acme/*'?\n";
  expect(out).toEndWith(`\n\n${warning}`);
  await cli.typed(["limit", "set", "key", "build", "month=3", "--models", "acme/*"]);
  await cli.typed(["limit", "set", "key", "build", "month=3", "--models", "zzz/*"]);
  const shown = (await cli.typed("limit show key build")).out;
  expect(shown).toContain(warning);
  expect(shown).toEndWith(
    "'zzz/*' matches no model today, so its limits wait for one; to list the models, run: sluice model list\n",
  );
  expect(shown).not.toContain("'acme/*' matches");
  expect(await cli.json("limit show key build --json")).toMatchObject({
    unmatched_models: { "acne/*": "acme/*", "zzz/*": null },
  });
  const gone = await cli.json(["limit", "set", "key", "build", "month=inherit", "--models", "acne/*", "--json"]);
  expect(gone.unmatched_models).toEqual({ "zzz/*": null });
  const other = (await cli.typed("limit show key build --model acme/writer-1")).out;
  expect(other).not.toContain("matches no model");
});

test("a weekday is the next one, from its first moment", () => {
  const sunday = Date.UTC(2026, 10, 29, 1);
  expect(instantTyped("friday", sunday)).toBe("2026-12-04T00:00:00.000Z");
  expect(instantTyped("Sunday", sunday)).toBe("2026-12-06T00:00:00.000Z");
  expect(instantTyped("2026-12-24", sunday)).toBe("2026-12-24");
});

test("commands find a person by the address, in any case", async () => {
  const address = "Ann@Example.com";
  for (const words of [`person show ${address}`, `person suspend ${address}`, `person resume ${address}`])
    expect([words, await cli.json(`${words} --json`)]).toMatchObject([words, { id: ann }]);
  const given = await cli.json(`membership give ${address} --org acme --role organization-admin --json`);
  expect(given).toMatchObject({ id: ann, memberships: [{ organization: "acme", role: "organization-admin" }] });
  expect(await cli.json(`membership take ${address} --org acme --json`)).toMatchObject({ id: ann });
  const key = await cli.json(`key create --org acme --name laptop --person ${address} --json`);
  expect(key).toMatchObject({ person_id: ann, team: { name: "research" } });
  expect(await cli.json(`limit set ${address} month=5 --json`)).toMatchObject({ subject: "person" });
  expect((await cli.typed(`request list --person ${address}`)).code).toBe(0);
  expect(await cli.json(`person forget ${address} --json`)).toMatchObject({ id: ann, state: "forgotten" });
});

test("an address of several people, one that nobody verified, and one of nobody are refused with what to do", async () => {
  for (const [words, says] of [
    [
      "person show bo@example.com",
      /2 people have the address 'bo@example\.com': per_\w+ \(bo-1, https.*per_\w+ \(bo-2,.*by the ID/,
    ],
    ["person suspend eve@example.com", /No issuer has verified the address 'eve@example\.com' of per_\w+ \(eve/],
    ["key create --org acme --name x --person nobody@example.com", /nobody with the address 'nobody@example\.com'/],
    ["limit show nobody@example.com", /nobody with the address/],
  ] as const) {
    const { code, err } = await cli.typed(words);
    expect([words, code]).toEqual([words, 1]);
    expect(err).toMatch(says);
  }
});
