/**
 * A management answer that a client follows as a stream of events. It is sent again when it has changed, to clients
 * that may read it, for as long as the node serves, and unread events never pile up.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Followed, type Followers, follow } from "../../../src/admin/http/follow.ts";
import { nearestOrganizations } from "../../../src/admin/management/nearest.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { SseDecoder, type SseMessage } from "../../../src/core/sse/decode.ts";
import { idOf } from "../../../src/core/store/ids.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { fleetReports } from "../../../src/stores/postgres/fleet-reports.ts";
import { reportOf } from "../../admin/management/fleet-reports.ts";
import { typed } from "../../harness/money.ts";
import { until } from "../../harness/until.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";
import { type OperatorPort, operatorPort } from "./operator-port.ts";

setDefaultTimeout(60_000);

/** Reads the messages of a stream as they come. */
function listened(response: Response) {
  const messages: SseMessage[] = [];
  const decoder = new SseDecoder();
  const reader = response.body!.getReader();
  const ended = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      messages.push(...decoder.push(value));
    }
  })();
  return { messages, ended, leave: () => reader.cancel() };
}

const data = ({ data }: SseMessage) => JSON.parse(data);

describe("over HTTP", () => {
  let owned: Owned;
  let port: OperatorPort;
  beforeAll(async () => {
    owned = await openDatabase();
    port = await operatorPort(owned);
  });
  afterAll(async () => {
    await port.stop();
    await owned.drop();
  });

  const followAs = (token: string, method = "GET") => {
    const headers = { authorization: `Bearer ${token}` };
    return fetch(`${port.url}/management/v1/fleet?format=events`, { method, headers });
  };

  test("the answer comes at once, and again within a second after a change, and not without one", async () => {
    const report = reportOf({ figures: { running: 1 } });
    await fleetReports(owned.db).report(report);
    const response = await followAs(port.tokens.viewer);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
    const { messages, ended, leave } = listened(response);
    await until(() => messages.length === 1, 1_000);
    for (const running of [2, 3]) {
      await fleetReports(owned.db).report({ ...report, figures: { ...report.figures, running } });
      await until(() => messages.length === running, 1_000);
    }
    // A report without a change sends no event, so the next event carries the next change.
    for (let again = 0; again < 10; again++)
      await fleetReports(owned.db).report({ ...report, figures: { ...report.figures, running: 3 } });
    await fleetReports(owned.db).report({ ...report, figures: { ...report.figures, running: 4 } });
    await until(() => messages.length === 4, 1_000);
    const told = [1, 2, 3, 4].map((running) => ["fleet", running]);
    expect(messages.map((one) => [one.event, data(one).running])).toEqual(told);
    await leave();
    await ended;
  });

  test("it is for the roles that may read it, and ends when the operator is revoked", async () => {
    const refused = await followAs(port.tokens["organization-admin"]);
    expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: "missing_role" } }]);
    const { token } = await port.manage.createOperator({ name: "leaves", role: "viewer" });
    const { messages, ended } = listened(await followAs(token!));
    await until(() => messages.length === 1);
    await port.manage.revokeOperator({ id: "leaves" });
    await ended;
    expect(messages.at(-1)!.event).toBe("error");
    expect(data(messages.at(-1)!)).toMatchObject({ error: { code: "invalid_operator_token" } });
  });

  test("the organizations that have used most of a limit are in it, the nearest first", async () => {
    const { manage } = port;
    await manage.createPlan({ name: "small", month: typed(1_000), week: typed(10_000) });
    const ids: Record<string, string> = {};
    for (const [slug, nanos] of Object.entries({ near: 924, nearer: 990, far: 0 })) {
      const id = idOf(Bun.randomUUIDv7(), "org_");
      await administration(owned.db).createOrganization({ id, slug, name: slug, plan: "small", actor: "cli:test" });
      ids[slug] = id;
      if (nanos > 0)
        await manage.adjustUsage({ organization: slug, window: "month", amount: typed(nanos), reason: "test" });
    }
    const acts = administration(owned.db);
    expect(await nearestOrganizations({ administration: acts, standings: acts })).toMatchObject([
      { organization: "nearer", organizationId: ids.nearer, window: "month", usagePercent: 99 },
      { organization: "near", organizationId: ids.near, window: "month", usagePercent: 92.4 },
    ]);
  });

  test("without the format it is one answer, and a form that there is not is refused", async () => {
    expect((await port.ask("/fleet")).body).toMatchObject({ nodes: { ready: 1 } });
    expect((await port.ask("/fleet?format=csv")).code).toBe("invalid_value");
    expect((await port.ask("/nodes?format=events")).code).toBe("unknown_field");
    const head = await followAs(port.tokens.admin, "HEAD");
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  });
});

describe("a stream", () => {
  const faultBody = ({ code }: Fault) => ({ error: { code } });
  const opened = async (followed: Partial<Followed>, followers: Followers = { count: 0 }) => {
    const seen = { left: 0, closed: 0 };
    const owner = { left: () => void seen.left++, closed: () => void seen.closed++ };
    const whole = { event: "count", beat: () => Bun.sleep(1), heartbeat_ms: 60_000, faultBody, read: async () => "1" };
    const response = (await follow(followers, { ...whole, ...followed })).open(owner);
    return { response, followers, seen };
  };

  test("reads nothing for a reader that does not read, and then sends the newest", async () => {
    let count = 0;
    const { response } = await opened({ read: async () => String(++count) });
    const reader = response.body!.getReader();
    const next = async () => new TextDecoder().decode((await reader.read()).value);
    expect(await next()).toContain("data: 1\n");
    await Bun.sleep(50);
    expect(count).toBeLessThanOrEqual(3);
    count = 1_000;
    await next();
    await next();
    expect(await next()).toMatch(/data: 100\d\n/);
    await reader.cancel();
  });

  test("that has nothing to say shows that it lives", async () => {
    const { response, seen } = await opened({ heartbeat_ms: 20 });
    const reader = response.body!.getReader();
    await reader.read();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(": \n\n");
    await reader.cancel();
    expect(seen).toEqual({ left: 1, closed: 1 });
  });

  test("ends with the reason when the answer cannot be read any more, and once", async () => {
    let count = 0;
    const { response, followers, seen } = await opened({
      async read() {
        if (++count > 3) throw new Fault("draining", "The node is about to stop.");
        return String(count);
      },
    });
    const { messages, ended } = listened(response);
    await ended;
    expect(messages.map(({ event }) => event)).toEqual(["count", "count", "count", "error"]);
    expect(data(messages[3]!)).toEqual({ error: { code: "draining" } });
    expect([seen, followers.count]).toEqual([{ left: 0, closed: 1 }, 0]);
  });

  test("that cannot begin has its true status, and no more than 64 are open at a time", async () => {
    const followers = { count: 0 };
    const away = new Fault("storage_unavailable", "away", { retryAfterSeconds: 1 });
    expect(opened({ read: () => Promise.reject(away) }, followers)).rejects.toBe(away);
    await until(() => followers.count === 0);
    const open = await Promise.all(Array.from({ length: 64 }, () => opened({}, followers)));
    expect(opened({}, followers)).rejects.toMatchObject({ code: "overloaded" });
    await open[0]!.response.body!.cancel();
    const { response } = await opened({}, followers);
    expect(response.status).toBe(200);
    for (const one of open.slice(1)) await one.response.body!.cancel();
    await response.body!.cancel();
    expect(followers.count).toBe(0);
  });
});
