/**
 * The published schema of each verb accepts the same inputs as the service. An input that the schema refuses is refused
 * by the service; an input that only the service refuses, with 400, must be of a kind that is listed here with the
 * reason. Bodies and queries are generated from management.json, and checked by an independent validator.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import fc from "fast-check";
import { managementDocument } from "../../../src/admin/http/document.ts";
import { managementPath } from "../../../src/admin/http/gate.ts";
import { verbs } from "../../../src/admin/management/verbs.ts";
import { type OperatorPort, operatorPort } from "../../core/http/operator-port.ts";
import { leaveAsked } from "../../harness/asked.ts";
import { newMember } from "../../harness/members.ts";
import { type Schema, valuesOf } from "../../harness/schema-values.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";

setDefaultTimeout(120_000);

interface Parameter {
  name: string;
  in: string;
  required: boolean;
  schema: Schema;
}
interface Described {
  parameters?: Parameter[];
  requestBody?: { content: { "application/json": { schema: Schema } } };
}

const document = managementDocument("1.0.0") as unknown as {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema> };
};
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema({ $id: "contract", components: document.components });

const ofTheCalendar = "a pattern knows no calendar and no clock";
const ofTheStore = "the catalog, the plan or the state of the organization decides";
const ofAddresses = "the forms of networks are many, and how wide one is no pattern can tell";
const comparesMembers = "it is about more than one member, or about members that may be null";

/**
 * The kinds of input that the schema accepts and the service refuses, each with the reason why no JSON Schema can
 * express the rule.
 */
const kinds: [says: RegExp, why: string][] = [
  [/ is not an instant\./, ofTheCalendar],
  [/ is in the past\./, ofTheCalendar],
  [/' is past\. Choose an instant/, ofTheCalendar],
  [/ is too long\./, ofTheCalendar],
  [/between the years 2000 and 2200/, ofTheCalendar],
  [/is not the beginning of an hour/, ofTheCalendar],
  [/begins at .*, in the future\./, ofTheCalendar],
  [/It needs an end after its beginning/, comparesMembers],
  [/^'from' must be before 'to'\.$/, comparesMembers],
  [/^A report of engines spans at most \d+ hours/, comparesMembers],
  [/A report is by one period/, comparesMembers],
  [/^A FOCUS report/, comparesMembers],
  [/^'(limit|cursor)' is for the list/, comparesMembers],
  [/^The cursor is of another list/, comparesMembers],
  [/^The catalog has no model /, ofTheStore],
  [/^There is no plan /, ofTheStore],
  [/ work for \d+ days at most /, ofTheStore],
  [/^Specify the (webhook's URL|addresses)/, ofTheStore],
  [/^Addresses are for the form mail|^Mail goes to addresses/, comparesMembers],
  [/is no address of mail/, "what an address is, its own parser decides"],
  [/^This service sends no mail|^sluice.yaml allows no mail to/, ofTheStore],
  [/is not a webhook's URL/, "what a URL is, its own parser decides"],
  [/is not an address or a network/, ofAddresses],
  [/is less than an IPv6 client has/, ofAddresses],
  [/^A key can have at most 20 labels/, ofTheStore],
  [/^Specify the organization's new slug or name/, comparesMembers],
  [/^Specify which policy to change/, comparesMembers],
  [/^Specify the time zone, too/, comparesMembers],
  [/^Specify the zone, or the day/, comparesMembers],
  [/^Without a time zone, weeks and months are counted from the start of the billing cycle/, comparesMembers],
  [/There is no time zone '/, "the names of time zones are those that the database knows"],
  [/organization-admin/, comparesMembers],
  [/^The role \S+ is (for the service|one in an organization)/, comparesMembers],
  [/^The team .* belongs to another organization/, ofTheStore],
  [/^Specify the limits to increase/, comparesMembers],
  [/^To end a raise, give nothing else/, comparesMembers],
  [/^A temporary increase needs an instant at which it ends/, comparesMembers],
  [/^A temporary increase ends within \d+ days/, ofTheCalendar],
  [/^The \w+ has no limit '/, ofTheStore],
  [/ is above that of the organization '/, ofTheStore],
  [/A temporary increase never lowers\.$/, ofTheStore],
  [/ is in \w+, and this service counts in \w+[,.]/, ofTheStore],
  [/^A (person|key) has no '(keys|members)'/, ofTheStore],
  [/^The request names no amount\. /, ofTheStore],
  [/^Set the limits first, and then increase them/, comparesMembers],
  [
    / must be an amount of \w+, such as 50 or 0\.25, /,
    "decimal text, or a number with its decimals, is read by its own rules",
  ],
  [/ must be more than 0 and at most /, "0 is written in many ways"],
  [/^The limit '\w+' must be at most a million/, "the most of an amount has as many digits as more would"],
  [/ is no pattern of models/, ofTheStore],
  [/so there is nothing to increase\.$/, ofTheStore],
  [
    /' must be (above 0, and )?at most a million(, not '[^']+')?\.$/,
    "the most of an amount has as many digits as more would",
  ],
  [/^'amount' must be other than 0/, "0 is written in many ways"],
];

let owned: Owned;
let port: OperatorPort;
beforeAll(async () => {
  owned = await openDatabase();
  port = await operatorPort(owned);
  await port.manage.createTeam({ organization: "acme", name: "research" });
});
afterAll(async () => {
  await port?.stop();
  await owned?.drop();
});

const describedAs = ({ path, method }: { path: string; method: string }) =>
  document.paths[managementPath + path]![method]!;

let made = 0;
/**
 * The path of a verb. Its ID is that of a new object, which was neither deleted nor renamed, so that the request
 * reaches the verb.
 */
async function pathTo({ path }: { path: string }): Promise<string> {
  if (!path.includes("{")) return path;
  const [name, { manage }] = [`made-${++made}`, port];
  const { id: organization } = await manage.createOrganization({ slug: name });
  const person = () => newMember(owned.db, name, { organization: name });
  const asked = async () =>
    leaveAsked(owned.db, { organizationId: organization, personId: await person(), email: `${name}@example.com` });
  const ids: Record<string, () => Promise<string> | string> = {
    organizations: () => organization,
    keys: async () => (await manage.createKey({ organization, name })).id,
    teams: async () => (await manage.createTeam({ organization, name })).id,
    plans: async () => (await manage.createPlan({ name })).name,
    people: person,
    // The ID of a destination that does not exist, so that the verb that sends a test notice sends none.
    notices: () => name,
    "limit-requests": async () => (await asked())["limit-requests"],
    invitations: async () => (await asked()).invitations,
    operators: () => "a-viewer",
    requests: () => "x",
    upstreams: () => "gpu-1",
  };
  const id = path.includes("{id}") ? await ids[path.split("/")[1]!]!() : "";
  return path.replace("{id}", id).replace("{person}", path.includes("{person}") ? await person() : "");
}

/** Throws if the service's response contradicts the schema. */
function judge(given: unknown, fits: boolean, { status, message }: { status: number; message: string }): void {
  expect(status).toBeLessThan(500);
  if (!fits) expect([given, status]).toEqual([given, 400]);
  else if (status === 400 && !kinds.some(([says]) => says.test(message)))
    throw new Error(`${JSON.stringify(given)} satisfies the schema, and is refused: ${message}`);
}

const withBody = verbs.filter(({ method, name }) => method !== "get" && name !== "closeOrganization");
describe.each(withBody.map((one) => [one.name, one] as const))("the body of %s", (_, one) => {
  const { schema } = describedAs(one).requestBody!.content["application/json"];
  const accepts = ajv.compile({ ...schema, components: document.components } as object);
  const bodies = valuesOf(schema, document.components.schemas, ["acme", "research", "starter", "a-viewer"]);

  test("is judged by the service as by its schema", async () => {
    const path = await pathTo(one);
    for (const body of fc.sample(bodies, 30)) {
      const sent = { method: one.method.toUpperCase(), body: JSON.stringify(body), headers: json };
      const { status, body: answer } = await port.ask(path, sent);
      judge(body, accepts(trimmed(body)), { status, message: String(answer.error?.message ?? "") });
    }
  });
});

const json = { "content-type": "application/json" };

const withQuery = verbs.filter((one) => describedAs(one).parameters?.some((parameter) => parameter.in === "query"));
describe.each(withQuery.map((one) => [one.name, one] as const))("the query of %s", (_, one) => {
  const parameters = describedAs(one).parameters!.filter((parameter) => parameter.in === "query");
  const queries = fc.record(
    Object.fromEntries(
      parameters.map(({ name, schema }) => [name, valuesOf(schema, document.components.schemas, ["acme"])]),
    ),
    { requiredKeys: parameters.flatMap(({ name, required }) => (required ? [name] : [])) },
  ) as fc.Arbitrary<Record<string, unknown>>;
  const accepts = parameters.map(({ name, schema }) => [name, ajv.compile(schema as object)] as const);

  test("is judged by the service as by its schema", async () => {
    const path = await pathTo(one);
    for (const query of fc.sample(queries, 30)) {
      const asked = new URLSearchParams(
        Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
      );
      const answer = await fetch(`${port.url}${managementPath}${path}?${asked}`, {
        headers: { authorization: `Bearer ${port.tokens.admin}` },
      });
      // A stream that follows new entries does not end, so only its beginning is read.
      const isFollowed = answer.headers.get("content-type")!.startsWith("text/event-stream");
      const text = isFollowed ? "" : await answer.text();
      if (isFollowed) await answer.body!.cancel();
      const isFine = accepts.every(([name, check]) => query[name] === undefined || check(trimmed(query[name])));
      const message = answer.status === 400 ? JSON.parse(text).error.message : "";
      judge(query, isFine, { status: answer.status, message });
    }
  });
});

/** The value with all texts trimmed, as the service reads them. */
function trimmed(value: unknown): unknown {
  return typeof value === "string"
    ? value.trim()
    : JSON.parse(JSON.stringify(value), (_, one) => (typeof one === "string" ? one.trim() : one));
}
