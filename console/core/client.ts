/**
 * The typed client of the verbs (operations of the management interface). Everything that the pages show and do is a
 * call of a verb.
 */
import { signal } from "@preact/signals";
import type { Static } from "typebox";
import type { VerbName, VerbNamed } from "../../src/admin/management/verbs.ts";
import { answersIn } from "./events.ts";
import { json, send } from "./http.ts";
import { verbTable } from "./verb-table.ts" with { type: "macro" };
import type { VerbEntry } from "./verb-table.ts";

export type { VerbName };
export type Answer<Name extends VerbName> = Static<VerbNamed<Name>["answers"]>;
export type Input<Name extends VerbName> = Static<VerbNamed<Name>["input"]>;
type Item<Name extends VerbName> = Answer<Name> extends { data: (infer One)[] } ? One : never;

export type { Item as ItemOf };

const table = verbTable() as Record<string, VerbEntry>;

export const entryOf = (name: string): VerbEntry | undefined => table[name];

interface Options {
  signal?: AbortSignal | undefined;
  priority?: "low" | undefined;
  /** The idempotency key, by which the server recognizes a repeated call. */
  repeatKey?: string;
}

export function call<Name extends VerbName>(
  name: Name,
  input: Input<Name>,
  options: Options = {},
): Promise<Answer<Name>> {
  return perform(name, input as Given, options) as Promise<Answer<Name>>;
}

export type Given = Record<string, unknown>;

/** The path of the verb that made this page's last change. A new object each time, so that a repetition is seen too. */
export const lastChange = signal<{ path: string } | null>(null);

/** Tells the parts of the page that a verb has changed something. */
export function tellChange(name: VerbName): void {
  lastChange.value = { path: table[name]!.path };
}

/** Calls a verb by a name that is only known when the page runs. */
export function perform(name: string, input: Given, { signal, priority, repeatKey }: Options = {}): Promise<unknown> {
  return json({ ...requestOf(name, input, repeatKey), signal, priority });
}

/**
 * Returns a function that gives the idempotency key for what a form sends. The key stays the same however often the
 * same input is sent: if the answer was lost, pressing again gets what the first press created. Another input gets
 * another key.
 */
export function repeatKeys(): (input: Given) => string {
  let sent = { text: "", key: "" };
  return (input) => {
    const text = JSON.stringify(input);
    if (sent.text !== text) sent = { text, key: randomKey() };
    return sent.key;
  };
}

/** Fetches an answer in another format, as a file. */
export async function download(name: VerbName, input: Given, format: string): Promise<Blob> {
  return (await send(requestOf(name, { ...input, format }))).blob();
}

/** Follows a live verb, whose answers come as a stream of events, until the signal aborts. Throws Refusal. */
export async function follow<Name extends VerbName>(
  name: Name,
  signal: AbortSignal,
  onAnswer: (answer: Answer<Name>) => void,
): Promise<void> {
  const request = { ...requestOf(name, { format: "events" }), signal };
  const response = await send({ ...request, headers: { accept: "text/event-stream" } });
  for await (const answer of answersIn(response.body!)) onAnswer(answer as Answer<Name>);
}

function requestOf(name: string, input: Given, repeatKey = randomKey()) {
  const entry = table[name];
  if (!entry) throw new Error(`There is no verb ${name}.`);
  const { method, path, id, secondId, kind } = entry;
  const { [id ?? ""]: named, [secondId ?? ""]: second, version, ...rest } = input;
  const [first, last] = [named, second].map((name) => encodeURIComponent(String(name)));
  const address = `/management/v1${path.replace("{id}", first!).replace(/\{\w+\}/, last!)}`;
  const headers: Record<string, string> = {};
  if (kind === "creation") headers["idempotency-key"] = repeatKey;
  if (kind === "change" && version !== undefined) headers["if-match"] = `"${version}"`;
  return method === "get"
    ? { method, path: address + queryOf(rest), headers }
    : { method, path: address, headers, body: rest };
}

function queryOf(input: Given): string {
  const given = Object.entries(input).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return query === "" ? "" : `?${query}`;
}

/** A random key. `crypto.randomUUID` is missing if the page came over plain HTTP. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
