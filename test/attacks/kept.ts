// Attacks by requests with idempotency keys, which run on without their clients: endless responses that no client
// reads, and many keys.

import type { Attack, Sent, Target } from "./attack.ts";
import { mib } from "./body.ts";
import { type Asking, slowReaders } from "./slow-readers.ts";
import { chatOf, chatWith, statusesOf } from "./talk.ts";

const readers = 20;
/**
 * The largest size of a stored response, in bytes. Up to this size, the part that the client has not read stays in
 * memory.
 */
const answer_bytes = 4 * mib;
const reader_bytes = 2 * answer_bytes;
/** The garbage of the embedded database for 16 MiB of text, before the collector removes it. */
const embedded_bytes = 128 * mib;
const keys = 10_000;
/** The memory of the embedded database for the rows of one stored response, with the garbage of writing them. */
const embeddedKey_bytes = 32 * 1024;
const at_once = 32;
/** The size in bytes of a request of `manyKeys`, including its head. */
const request_bytes = 350;

/** A request with an idempotency key that no other request has. */
function unread({ key, endlessModel }: Target): Asking {
  const body = JSON.stringify({ model: endlessModel, stream: true, messages: [{ role: "user", content: "Hello" }] });
  return { request: Buffer.from(chatOf(key, body, `idempotency-key: ${crypto.randomUUID()}`)) };
}

async function manyKeys(target: Target): Promise<Sent> {
  const { model } = target;
  const answers = await statusesOf(keys, at_once, () =>
    chatWith(target, { model }, { "idempotency-key": crypto.randomUUID() }),
  );
  const refused = answers.filter((status) => status !== "200").length;
  const problems = refused > 0 ? [`${refused} of ${keys} were refused`] : [];
  return { bytes: keys * request_bytes, unpackedBytes: 0, answers, problems };
}

const answers = `{ answer_bytes_max: ${answer_bytes} }`;
const unreadName = `${readers} clients that read nothing of an endless answer with an idempotency key`;

export const keptAnswers: readonly Attack[] = [
  {
    name: unreadName,
    node: { answers, hasDatabase: true },
    run: (target) => slowReaders(target, readers, unread),
    bounds: () => ({ step_ms: 100, growth_bytes: 64 * mib + readers * reader_bytes }),
  },
  {
    name: `${unreadName}, on the embedded database`,
    node: { answers },
    run: (target) => slowReaders(target, readers, unread),
    bounds: () => ({ step_ms: 100, growth_bytes: 64 * mib + readers * reader_bytes + embedded_bytes }),
  },
  {
    name: `${keys.toLocaleString("en")} idempotency keys`,
    node: { hasDatabase: true },
    run: manyKeys,
    // Most of this growth is garbage: with three times as many keys, it is only an eighth larger.
    bounds: () => ({ step_ms: 100, growth_bytes: 224 * mib }),
  },
  {
    name: `${keys.toLocaleString("en")} idempotency keys, on the embedded database`,
    run: manyKeys,
    bounds: () => ({ step_ms: 100, growth_bytes: keys * embeddedKey_bytes }),
  },
];
