// Writes the site's pages of an API contract (OpenAPI): one for each tag of operations, and one with the schemas.

export interface Page {
  /** The page's path, relative to the pages of the site. */
  path: string;
  title: string;
  text: string;
}

type Schema = Record<string, unknown>;

interface Operation {
  operationId: string;
  tags?: string[];
  summary: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { $ref?: string; description?: string; content?: Record<string, Content> }>;
}

interface Content {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { summary?: string; value: unknown }>;
}

export interface Contract {
  info: { title: string; version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses?: Record<string, { description: string }> };
}

const methods = ["get", "post", "put", "patch", "delete"];
/** The number of levels of nested fields that are listed. For a field on the last level, only its type is shown. */
const depth_max = 4;

export function pagesOf(contract: Contract, folder: string): Page[] {
  const operations = Object.entries(contract.paths).flatMap(([path, item]) =>
    methods.flatMap((method) => (item[method] ? [{ path, method, operation: item[method] }] : [])),
  );
  const byTag = contract.tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags?.[0] === name);
    const text = [`# ${name}`, description, ...own.flatMap(operationText)].join("\n\n");
    return { path: `${folder}/${name.toLowerCase()}.md`, title: name, text };
  });
  const { info } = contract;
  const overview = [`# ${info.title}`, `Version ${info.version}, OpenAPI 3.1.`, info.description].join("\n\n");
  const list = byTag.map(({ path, title }) => `- [${title}](${path.split("/").at(-1)})`).join("\n");
  return [
    { path: `${folder}/index.md`, title: "Overview", text: `${overview}\n\n## Operations\n\n${list}\n` },
    ...byTag,
    { path: `${folder}/schemas.md`, title: "Schemas", text: schemasText(contract) },
  ];
}

function operationText(at: { path: string; method: string; operation: Operation }): string[] {
  const { operation } = at;
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: place, required, description, schema }) =>
      `| \`${name}\` | ${place} | ${typeOf(schema)} | ${required ? "yes" : "no"} | ${cell(description)} |`,
  );
  return [
    `## ${operation.summary}`,
    `\`${at.method.toUpperCase()} ${at.path}\``,
    operation.description ?? "",
    ...(parameters.length === 0
      ? []
      : [["| parameter | in | type | required | |", "|---|---|---|---|---|", ...parameters].join("\n")]),
    ...bodyText(operation),
    ["| status | body | meaning |", "|---|---|---|", ...Object.entries(operation.responses).map(answerRow)].join("\n"),
  ].filter((text) => text !== "");
}

function bodyText({ requestBody }: Operation): string[] {
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  if (type === undefined || content === undefined) return [];
  const [example] = [content.example, ...Object.values(content.examples ?? {}).map(({ value }) => value)].filter(
    (value) => value !== undefined,
  );
  const rows = content.schema?.$ref === undefined ? fieldRows(content.schema ?? {}, "", 0) : [];
  return [
    `Body: \`${type}\`, ${typeOf(content.schema ?? {})}`,
    ...(rows.length === 0 ? [] : [fieldTable(rows)]),
    ...(example === undefined || isEmpty(example) ? [] : [`\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``]),
  ];
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function answerRow([status, answer]: [string, Operation["responses"][string]]): string {
  const contents = Object.entries(answer.content ?? {});
  const bodies = contents.map(([type, { schema }]) =>
    schema === undefined || schema.type === "string" ? `\`${type}\`` : typeOf(schema),
  );
  const text = answer.description ?? answer.$ref?.split("/").at(-1);
  return `| ${status} | ${[...new Set(bodies)].join(", ")} | ${cell(text)} |`;
}

function schemasText({ components }: Contract): string {
  const parts = Object.entries(components.schemas).map(([name, schema]) => {
    const rows = fieldRows(schema, "", 0);
    const head = `## ${name}\n\n${(schema.description as string | undefined) ?? ""}`.trimEnd();
    return rows.length === 0 ? `${head}\n\n${typeOf(schema)}` : `${head}\n\n${fieldTable(rows)}`;
  });
  return `# Schemas\n\n${parts.join("\n\n")}\n`;
}

function fieldTable(rows: readonly string[]): string {
  return ["| field | type | required | |", "|---|---|---|---|", ...rows].join("\n");
}

/** The rows of a table: one for each field, followed by those of its nested fields. */
function fieldRows(schema: Schema, before: string, depth: number): string[] {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  const required = (schema.required ?? []) as string[];
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = before + name;
    const meaning = field.description as string | undefined;
    const row = `| \`${path}\` | ${typeOf(field)} | ${required.includes(name) ? "yes" : "no"} | ${cell(meaning)} |`;
    if (depth + 1 >= depth_max) return [row];
    const items = field.items as Schema | undefined;
    const inner =
      items === undefined ? fieldRows(field, `${path}.`, depth + 1) : fieldRows(items, `${path}[].`, depth + 1);
    return [row, ...inner];
  });
}

/** The type of a schema as text, with links to named types. */
export function typeOf(schema: Schema): string {
  if (typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1)!;
    return `[${name}](schemas.md#${name.toLowerCase()})`;
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => code(JSON.stringify(value))).join(" or ");
  const choices = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(" or ");
  if (Array.isArray(schema.allOf)) return (schema.allOf as Schema[]).map(typeOf).join(" and ");
  if (schema.type === "array") return `list of ${typeOf((schema.items ?? {}) as Schema)}`;
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  return typeof schema.type === "string" ? bounded(schema, schema.type) : "any value";
}

function bounded(schema: Schema, type: string): string {
  const least = schema.minimum ?? schema.minLength;
  const most = schema.maximum ?? schema.maxLength;
  const unit = type === "string" ? " characters" : "";
  if (least !== undefined && most !== undefined) return `${type}, ${least} to ${most}${unit}`;
  if (most !== undefined) return `${type}, at most ${most}${unit}`;
  return least === undefined ? type : `${type}, at least ${least}${unit}`;
}

function code(text: string): string {
  return `\`${text.replaceAll("|", "\\|")}\``;
}

function cell(text: string | undefined): string {
  return (text ?? "").replaceAll(/\s*\n\s*/g, " ").replaceAll("|", "\\|");
}
