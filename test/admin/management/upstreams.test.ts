/**
 * Drains of single addresses: an address that gets no requests cannot be drained, because the drain would have no
 * effect.
 */
import { expect, test } from "bun:test";
import { client, direct } from "../../../src/admin/management/client.ts";
import { upstreamNames } from "../../../src/admin/management/context.ts";
import type { StoredReport } from "../../../src/core/store/fleet.ts";
import type { Resolving } from "../../../src/core/upstream/target.ts";
import { memoryDirectory } from "../../core/auth/memory-directory.ts";
import { emptyLedger, memoryContext } from "./empty-ledger.ts";
import { storedReport } from "./fleet-reports.ts";

const engineAt = (upstream: string, replica: string | null) => ({
  ...{ upstream, replica, states: { closed: 1 }, requests: 0, tokens: 0, waiting: 0 },
});
const twoAddresses = [engineAt("named", "10.0.0.7"), engineAt("named", "2001:db8::7"), engineAt("gpus", null)];

/**
 * Returns verbs on a fleet in which the upstream `named` has the setting `resolve`, and two engines are called `gpus`.
 */
function managing(reports: StoredReport[], drained: string[] = []) {
  const stores = emptyLedger();
  const upstreams = upstreamNames([{ name: "gpus" }, { name: "gpus" }, { name: "named", resolve: {} as Resolving }]);
  const drains = drained.map((replica) => ({
    ...{ upstream: "named", replica: replica || null, drainedAt: new Date(0), until: null, actor: "cli:test" as const },
  }));
  const context = memoryContext(memoryDirectory(), {
    catalog: () => ({ plans: new Map(), models: [], ...upstreams, billing: { currency: "USD", provider: "Sluice" } }),
    drains: {
      ...stores.drains,
      listDrains: async () => drains,
      resume: async ({ replica }) => drains.filter((one) => one.replica === replica),
    },
    fleet: { listProcesses: async () => reports },
  });
  const manage = client(direct(context));
  return {
    manage,
    resume: async (upstream: string, replica: string) =>
      (await manage.resumeUpstream({ upstream, replica })).data.map((one) => one.replica),
    drain: async (upstream: string, replica: string) => (await manage.drainUpstream({ upstream, replica })).replica,
  };
}

test("an address that nodes report is drained, however it is written", async () => {
  const { drain } = managing([storedReport({ engines: twoAddresses })]);
  expect(await drain("named", "10.0.0.7")).toBe("10.0.0.7");
  expect(await drain("named", "2001:DB8:0::0007")).toBe("2001:db8::7");
});

test.each(["10.0.0.8", "10.0.0.07", "10.0.0.7:8000", "gpu"])(
  "'%s', where nothing is sent, is refused",
  async (word) => {
    const { drain } = managing([storedReport({ engines: twoAddresses })]);
    const refusal = drain("named", word);
    await expect(refusal).rejects.toMatchObject({ code: "resource_not_found" });
    await expect(refusal).rejects.toThrow(`'named' is not at '${word}'. It is at 10.0.0.7, 2001:db8::7.`);
  },
);

test("an engine of a name without 'resolve' is not drained alone", async () => {
  const { drain, manage } = managing([storedReport({ engines: twoAddresses })]);
  const refusal = drain("gpus", "10.0.0.7");
  await expect(refusal).rejects.toMatchObject({ code: "resource_not_found" });
  await expect(refusal).rejects.toThrow("Leave the replica out");
  expect(await manage.drainUpstream({ upstream: "gpus" })).toMatchObject({ upstream: "gpus", replica: null });
  await expect(manage.drainUpstream({ upstream: "other" })).rejects.toThrow("The configuration has: gpus, named.");
});

test("any address is drained while nodes report no engine, or not all; other text is not", async () => {
  for (const reports of [[], [storedReport({ engines: twoAddresses, enginesLeftOut: 3 })]]) {
    const { drain } = managing(reports);
    expect(await drain("named", "10.0.0.9")).toBe("10.0.0.9");
    expect(await drain("named", "FD00:0::9")).toBe("fd00::9");
    await expect(drain("named", "gpu")).rejects.toThrow("'named' is not at 'gpu'.");
  }
});

test("a drain that there is can be changed after its address has left the name", async () => {
  const { drain } = managing([storedReport({ engines: twoAddresses })], ["10.0.0.6"]);
  expect(await drain("named", "10.0.0.6")).toBe("10.0.0.6");
});

test("an address is resumed however it is written", async () => {
  const { resume } = managing([], ["fd00::7"]);
  expect(await resume("named", "FD00:0::7")).toEqual(["fd00::7"]);
});

test("an address is not resumed alone while all of them are drained, and the refusal says so", async () => {
  const { manage } = managing([], [""]);
  const refusal = manage.resumeUpstream({ upstream: "named", replica: "10.0.0.7" });
  await expect(refusal).rejects.toThrow("'named' is drained at all of its addresses. Resume it without the replica.");
});
