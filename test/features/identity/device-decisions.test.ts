// Two pages that decide about one device at once; a node of its own, since a lost decision counts as a wrong code.
import { expect, setDefaultTimeout, test } from "bun:test";
import { Browser } from "../../harness/browser.ts";
import { startPeopleNode } from "../../harness/people-node.ts";

setDefaultTimeout(120_000);

test("a device is approved and denied at once: one decision counts, and the other page says that it does not", async () => {
  const secrets: string[] = [];
  await using node = await startPeopleNode({ secrets });
  node.provider.account = "ann";
  node.provider.claims.set("ann", { name: "Ann", groups: ["research"] });
  const post = async (path: string, fields: Record<string, string>) => {
    const response = await fetch(node.serviceUrl + path, { method: "POST", body: new URLSearchParams(fields) });
    return { status: response.status, answer: (await response.json()) as Record<string, string> };
  };
  const [organization] = (await node.sluice.json<{ id: string }[]>("org", "list")).map(({ id }) => id);
  for (let round = 0; round < 2; round++) {
    const { answer: begun } = await post("/oauth/device_authorization", { surface: "test" });
    const decide = async (decision: string) => {
      const browser = new Browser();
      const page = await browser.submit(await browser.visit(begun.verification_uri_complete!), "/device");
      return () => browser.submit(page, "/device/decision", { decision, organization: organization! });
    };
    const [approve, deny] = [await decide("approve"), await decide("deny")];
    const [approval, denial] = await Promise.all([approve(), deny()]);
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const { status, answer } = await post("/oauth/token", { grant_type, device_code: begun.device_code! });
    secrets.push(...[answer.access_token, answer.refresh_token].filter((secret) => secret !== undefined));
    const isApproved = status === 200;
    expect(answer.error).toBe(isApproved ? undefined : "access_denied");
    expect([approval.status, approval.text.includes("<h1>Approved")]).toEqual([isApproved ? 200 : 400, isApproved]);
    expect([denial.status, denial.text.includes("<h1>Denied")]).toEqual([isApproved ? 400 : 200, !isApproved]);
  }
});
