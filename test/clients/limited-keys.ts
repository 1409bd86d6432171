// Creates keys whose requests are refused because of a limit, for tests that an agent shows the reason and does not
// retry. The keys are: one of a team in the time zone of Berlin that has used exactly its $50 for the month; one of an
// organization that has used up its limit for the week; and one with a limit that is smaller than a single request.

import { engineModel, type Service, startService, upstreamName } from "../harness/engine.ts";

/** The plan of the organizations that `usedUpKey` and `smallKey` create. */
export const weekly = { weekly: "{ week: 9000000 }" };
export const usedUpMessage = "has used its $0.009 for this week";

/** Creates a key of the new organization `weekly`, and uses up the organization's limit for the week. */
export async function usedUpKey(service: Service): Promise<string> {
  await service.json("org", "create", "weekly", "--plan", "weekly");
  const { key } = await service.json<{ key: string }>("key", "create", "--org", "weekly", "--name", "agent");
  await service.json("usage", "adjust", "weekly", "--window", "week", "--amount", "0.009", "--reason", "test");
  return key;
}

/** Limits that are smaller than any request of an agent, and the error message for each. */
export const tooSmall: [limit: string, why: RegExp][] = [
  ["tokens_per_minute=1000", /more than the key \S+'s whole limit of 1,000 tokens a minute/],
  ["week=0.0001", /more than the key \S+'s whole \$0\.0001 for this week/],
];
export const neededMessage = /This request needs at least (?:[\d,]+ tokens|\$[\d.]+), /;

/** Creates a key with this limit, in a new organization. */
export async function smallKey(service: Service, limit: string): Promise<string> {
  const org = `never-${limit.slice(0, 4)}`;
  await service.json("org", "create", org, "--plan", "weekly");
  const create = ["key", "create", "--org", org, "--name", "agent", "--limit", limit];
  return (await service.json<{ key: string }>(...create)).key;
}

const dear = "acme/dear";
/** An output token costs one cent and an input token nothing, so that exactly $50 can be used. */
const prices = "{ input: 0, output: 10000 }";
const budgetTokens = 5_000;

/** The complete error message about the limit. A client may break it into lines. */
export const spentMessage =
  /The\s+team\s+research\s+has\s+used\s+its\s+\$50\.00\s+for\s+this\s+month\.\s+It\s+starts\s+anew\s+on\s+1\s+\w+\s+(\d{4}\s+)?00:00\s+\(Europe\/Berlin\)/;

export interface SpentTeam extends AsyncDisposable {
  service: Service;
  /** A key of the team. */
  key: string;
}

export async function spentTeam(): Promise<SpentTeam> {
  const service = await startService({
    engine: { directives: "", namesModel: false },
    extraModels: `
  - id: ${dear}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 16384
    prices: ${prices}
    routes: [{ upstream: ${upstreamName}, model: ${engineModel} }]`,
  });
  const org = ["--org", "berlin"];
  await service.json("org", "create", "berlin", "--plan", "unlimited", "--zone", "Europe/Berlin");
  await service.json("team", "create", ...org, "--name", "research", "--limit", "month=50");
  const named = ["--name", "agent", "--team", "research"];
  const { key } = await service.json<{ key: string }>("key", "create", ...org, ...named);
  const response = await fetch(`${service.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: dear,
      stream: true,
      messages: [{ role: "user", content: `[simulator: tokens=${budgetTokens + 500}]` }],
    }),
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  await response.text();
  return { service, key, [Symbol.asyncDispose]: async () => void (await service.stop()) };
}
