// Checks of the identity settings before the first sign-in: `sluice person try`, and the issuers in `sluice doctor`.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identityOf } from "../../../src/config/identity.ts";
import { startIssuer, type TestIssuer } from "../../harness/issuer.ts";
import { doctorOf, type Shell, shell } from "./shell.ts";

setDefaultTimeout(30_000);
const folder = mkdtempSync(join(tmpdir(), "sluice-try-"));
let issuer: TestIssuer;
let it: Shell;
beforeAll(async () => {
  issuer = await startIssuer();
  it = withIdentity({});
});
afterAll(async () => {
  await issuer[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

function withIdentity(of: object): Shell {
  const identity = identityOf({
    issuers: [{ issuer: issuer.issuer, client_id: "sluice", client_secret: "s", audiences: ["sluice-api"], ...of }],
    rules: [
      { claim: "groups", has: "platform", role: "admin" },
      { claim: "groups", has: "research", organization: "acme", team: "lab", role: "member", models: ["a/b"] },
      { claim: "email", is: "ann@example.com", organization: "acme", role: "organization-admin" },
    ],
  } as never);
  const plain = shell().services.configuration;
  return shell({ now_ms: Date.now, configuration: async () => ({ ...(await plain()), identity }) });
}

async function tokenFile(claims: object) {
  const file = join(folder, `${crypto.randomUUID()}.jwt`);
  writeFileSync(file, `${await issuer.sign({ sub: "ann", aud: "sluice-api", ...claims })}\n`);
  return file;
}

test("an e-mail address becomes what the rules say, the first one in an organization", async () => {
  const found = await it.json("person try ann@example.com --group platform --group research --json");
  expect(found).toMatchObject({
    issuer: issuer.issuer,
    subject: null,
    rules: [1, 2, 3],
    memberships: [
      { organization: null, role: "admin" },
      { organization: "acme", team: "lab", role: "member", models: ["a/b"] },
    ],
    calls_in: "acme",
  });
  const { out } = await it.typed("person try bob@example.com");
  expect(out).toContain("no rule matches");
  expect(out).toContain("it gets 401");
});

test("a token is verified as a caller's, and one that does not hold is refused with the reason", async () => {
  const { out, code } = await it.typed(["person", "try", await tokenFile({ groups: ["research"] })]);
  expect(code).toBe(0);
  expect(out).toContain("member in acme, team lab");
  expect(out).toContain("groups has research");
  const wrong = await it.typed(["person", "try", await tokenFile({ aud: "another" })]);
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain('unexpected "aud" claim value');
});

test("without identity settings it says where they belong", async () => {
  expect((await shell().typed("person try ann@example.com")).err).toContain("add 'identity:' to sluice.yaml");
});

test("doctor says of an issuer whether it responds, signs with an allowed algorithm, and has the right time", async () => {
  const findings = async (one: Shell) => (await doctorOf(one)).of(`issuer ${issuer.issuer}`);
  expect(await findings(it)).toMatchObject({ status: "ok" });
  const other = await findings(withIdentity({ algorithms: ["ES256"] }));
  expect(other.status).toBe("problem");
  expect(other.says).toContain("'algorithms'");
  const keys = issuer.keys.map(({ publicJwk }) => publicJwk);
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  issuer.answer("/jwks", () => Response.json({ keys }, { headers: { date } }));
  expect((await findings(it)).says).toContain("synchronise the clocks");
  issuer.answer("/jwks", null);
  issuer.away = true;
  expect((await findings(withIdentity({ groups_claim: "roles" }))).status).toBe("problem");
  issuer.away = false;
});

test("doctor says which organizations and teams of the rules are not there, until somebody creates them", async () => {
  const own = withIdentity({});
  const rules = async () => (await doctorOf(own)).of("rules");
  expect(await rules()).toMatchObject({
    status: "warning",
    says: "rules 2, 3 give nothing while there is no organization 'acme': sluice org create acme",
  });
  await own.typed("org create acme --plan unlimited");
  expect(await rules()).toMatchObject({
    status: "warning",
    says: "rule 2 gives nothing while acme has no team 'lab': sluice team create --org acme --name lab",
  });
  await own.typed("team create --org acme --name lab");
  expect(await rules()).toMatchObject({ status: "ok", says: "3 rules; their organizations and teams are there" });
});
