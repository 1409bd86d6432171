// If no administrator can connect over the network any more, because a token expired or the issuer revoked the role,
// the node warns, and the command line on a node's machine still works.

import { expect, setDefaultTimeout, test } from "bun:test";
import { signInByIssuer } from "../../harness/console-session.ts";
import { freePort } from "../../harness/daemon.ts";
import { startPeopleNode } from "../../harness/people-node.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(120_000);
type Findings = { check: string; status: string; says: string }[];

const administratorsOf = async (sluice: Sluice) => {
  const { checks } = (await (await fetch(`${sluice.url}/readyz?verbose`)).json()) as { checks: Record<string, string> };
  return checks.administrators ?? "";
};
const toldOf = async (sluice: Sluice, words: string) => {
  await until(async () => (await administratorsOf(sluice)).startsWith(`warning: ${words}`), 30_000, words);
  await until(() => sluice.stderr().includes(`"notice":"${words}`), 10_000, "the notice in the log");
};

test.concurrent("the clock: the last token expires, which is told before and after", async () => {
  const [port, operatorPort] = [await freePort(), await freePort()];
  const env = { PORT: String(port), SLUICE_OPERATOR_PORT: String(operatorPort) };
  const sluice = await startSluice({ env });
  const manage = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`http://127.0.0.1:${operatorPort}/management/v1/operators`, { headers })).status;
  };
  const create = async (...words: string[]) =>
    (await sluice.json<{ token: string }>("operator", "create", ...words, "--role", "admin")).token;
  try {
    expect(await administratorsOf(sluice)).toBe("ok");
    // The node checks the tokens every five seconds, so it warns before this token expires.
    const token = await create("first", "--expires", new Date(Date.now() + 12_000).toISOString());
    expect(await manage(token)).toBe(200);
    await toldOf(sluice, "the last token that can administer expires at");
    await until(async () => (await manage(token)) === 401, 60_000, "the token to expire");
    await toldOf(sluice, "nobody can administer over the network since");
    const { code, stdout } = await sluice.cli("doctor", "--json");
    const warned = (JSON.parse(stdout) as Findings).find(({ check }) => check === "administrators");
    expect([code, warned?.status]).toEqual([0, "warning"]);
    expect(await manage(await create("second"))).toBe(200);
  } finally {
    await sluice.stop();
  }
});

test.concurrent("the issuer's word: the last admin leaves the group, and the command line gives the role again", async () => {
  await using node = await startPeopleNode();
  const { sluice } = node;
  const signIn = async (groups: string[]) => {
    const { call, manage } = await signInByIssuer(node, "eve", { groups });
    const { id } = (await call("/session")).body as { id: string };
    return { id, status: (await manage("/operators")).status };
  };
  const { id, status } = await signIn(["platform"]);
  expect(status).toBe(200);
  expect((await sluice.cli("person", "suspend", id)).stderr).toContain("Nobody could administer any more");
  expect((await signIn(["research"])).status).toBe(403);
  await toldOf(sluice, "nobody can administer over the network since");
  expect((await sluice.cli("membership", "give", id, "--role", "admin")).code).toBe(0);
  expect((await signIn(["research"])).status).toBe(200);
  await until(async () => (await administratorsOf(sluice)) === "ok", 30_000, "the warning to end");
});
