// A replacement for the program of Prisma's query engine, which Prisma Client Python starts: it runs the WebAssembly
// build of @prisma/client, on PrismaPg, and accepts the same GraphQL queries over HTTP. LITELLM_PRISMA names the folder
// of the packages.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.LITELLM_PRISMA, "package.json"));
const { parse, valueFromASTUntyped } = require("graphql");
const pg = require("pg");
const { PrismaPg } = require("@prisma/adapter-pg");
const { bindAdapter } = require("@prisma/driver-adapter-utils");
const background = require("@prisma/client/runtime/query_engine_bg.postgresql.js");
const file = require.resolve("@prisma/client/runtime/query_engine_bg.postgresql.wasm");
const { instance } = await WebAssembly.instantiate(readFileSync(file), { "./query_engine_bg.js": background });
background.__wbg_set_wasm(instance.exports);
const given = process.env.OVERWRITE_DATASOURCES ? JSON.parse(process.env.OVERWRITE_DATASOURCES)[0]?.url : undefined;
const url = new URL(given ?? process.env.DATABASE_URL);
const max = Number(url.searchParams.get("connection_limit") ?? 10);
for (const name of [
  "connection_limit",
  "pool_timeout",
  "connect_timeout",
  "socket_timeout",
  "pgbouncer",
  "statement_cache_size",
])
  url.searchParams.delete(name);
const datamodel = readFileSync(process.env.PRISMA_DML_PATH, "utf8").replace(/generator \w+ \{[^}]*\}/, "");
const models = [...datamodel.matchAll(/^model (\w+) /gm)].map(([, name]) => name).sort((a, b) => b.length - a.length);
const pool = new pg.Pool({ connectionString: url.href, max });
pool.on("error", () => {});
// Some types of Postgres' own tables (char, name, oid, unknown) are unknown to the adapter, and are read as text or
// integers.
const known = { 18: 25, 19: 25, 705: 25, 26: 20, 1003: 1009 };
const { Query } = pg;
const described = Query.prototype.handleRowDescription;
Query.prototype.handleRowDescription = function (message) {
  for (const field of message.fields) field.dataTypeID = known[field.dataTypeID] ?? field.dataTypeID;
  return described.call(this, message);
};
const options = {
  datamodel,
  logLevel: "error",
  logQueries: false,
  datasourceOverrides: {},
  env: process.env,
  ignoreEnvVarErrors: true,
  enableMetrics: false,
};
const engine = new background.QueryEngine(options, () => {}, bindAdapter(new PrismaPg(pool)));
const trace = "{}";
await engine.connect(trace);

/** The model and the action of a query's name: `findUniqueUser` is the action `findUnique` of the model `User`. */
const nameOf = (field) => {
  if (field === "queryRaw" || field === "executeRaw") return { action: field };
  const modelName = models.find((name) => field.endsWith(name));
  return { modelName, action: field.slice(0, -modelName.length) };
};

const selectionOf = (field, json) => {
  const given = field.arguments.map(({ name, value }) => [name.value, valueFromASTUntyped(value)]);
  const chosen = (field.selectionSet?.selections ?? []).map((one) => [
    one.name.value,
    one.selectionSet ? selectionOf(one) : true,
  ]);
  const values = given.map(([name, value]) => [name, isWritten(name) ? typed(value, json) : value]);
  return { arguments: Object.fromEntries(values), selection: Object.fromEntries(chosen) };
};

/**
 * The columns of type Json of each model. In GraphQL their values are text; in the engine's JSON protocol they are text
 * with a type.
 */
const jsonColumns = new Map(
  [...datamodel.matchAll(/^model (\w+) \{([\s\S]*?)^\}/gm)].map(([, model, lines]) => [
    model,
    new Set([...lines.matchAll(/^\s*(\w+)\s+Json\b/gm)].map(([, column]) => column)),
  ]),
);

const isWritten = (argument) => ["data", "create", "update"].includes(argument);

const typed = (data, json) => {
  if (Array.isArray(data)) return data.map((one) => typed(one, json));
  const type = (value) => {
    if (typeof value === "string") return { $type: "Json", value };
    return value !== null && typeof value?.set === "string" ? { set: type(value.set) } : value;
  };
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, json.has(name) ? type(value) : value]));
};

/**
 * Translates a GraphQL text to queries of the engine's JSON protocol, the only one that the WebAssembly build supports.
 */
const queriesOf = (text) =>
  parse(text, { noLocation: true }).definitions[0].selectionSet.selections.map((field) => ({
    alias: field.alias?.value ?? field.name.value,
    body: bodyOf(field),
  }));

const bodyOf = (field) => {
  const name = nameOf(field.name.value);
  return { ...name, query: selectionOf(field, jsonColumns.get(name.modelName) ?? new Set()) };
};

/** Removes the types of JSON values, which GraphQL does not have. */
const plain = (value) => {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  if ("$type" in value) return value.value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
};

const named = (alias, answer) => (answer.data ? { data: { [alias]: plain(Object.values(answer.data)[0]) } } : answer);

const queried = async (body, transaction) => JSON.parse(await engine.query(JSON.stringify(body), trace, transaction));

/** Runs the queries. Several queries are run in one transaction. */
async function asked({ query, batch }, transaction) {
  const queries = batch ? batch.flatMap(({ query }) => queriesOf(query)) : queriesOf(query);
  if (!batch && queries.length === 1) return named(queries[0].alias, await queried(queries[0].body, transaction));
  const answer = await queried({ batch: queries.map(({ body }) => body), transaction: {} }, transaction);
  if (!answer.batchResult) return answer;
  const results = answer.batchResult.map((one, at) => named(queries[at].alias, one));
  if (batch) return { batchResult: results };
  const errors = results.find((one) => one.errors)?.errors;
  return { data: Object.assign({}, ...results.map(({ data }) => data)), ...(errors && { errors }) };
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const tell = (status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
  try {
    const path = request.url;
    if (path === "/status") return tell(200, { status: "ok" });
    if (path.startsWith("/metrics")) return tell(200, { counters: [], gauges: [], histograms: [] });
    const transaction = /^\/transaction\/(start|([^/]+)\/(commit|rollback))$/.exec(path);
    if (transaction?.[1] === "start") return tell(200, await engine.startTransaction(text, trace));
    if (transaction) return tell(200, (await engine[`${transaction[3]}Transaction`](transaction[2], trace)) ?? "{}");
    const answer = await asked(JSON.parse(text), request.headers["x-transaction-id"]);
    tell(200, answer);
  } catch (failure) {
    tell(500, { error: String(failure?.message ?? failure) });
  }
});
const port = Number(process.argv[process.argv.indexOf("-p") + 1]);
server.listen(port, "localhost");
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => process.exit(0));
