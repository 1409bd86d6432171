/**
 * Finds stored responses before a request is decoded, and stores a response before its caller gets the end of the
 * answer, so that the next request finds it on any node.
 */

import type { Principal } from "../../core/auth/verdict.ts";
import { Fault } from "../../core/inference/fault.ts";
import { nothingFound, type Resolved, type StoredResponses } from "../../core/operations/stored.ts";
import type { InputItem, ResponseObject, ResponsesRequest } from "../../core/protocol/openai-responses/contract.ts";
import {
  type Found,
  type References,
  referencesOf,
  refersTo,
  withResolved,
} from "../../core/protocol/openai-responses/references.ts";
import type { Maker } from "../../core/store/maker.ts";
import { within } from "../../core/time/cancellation.ts";
import { yieldFor } from "../../core/time/turns.ts";
import type { ResponsesDependencies } from "./dependencies.ts";
import { historyOf, isInputId, itemOf, itemsById, type StoredTurn, storable } from "./kept-items.ts";
import type { KeptResponse, KeptTurn, Reader } from "./store/responses.ts";

/** How long the end of an answer waits until the response is stored; after that, the end is sent nevertheless. */
const keep_ms_max = 2_000;

type RecordsDependencies = Pick<ResponsesDependencies, "responses" | "limits" | "log">;

export function readerOf({ organization, person }: Principal): Reader {
  return { organizationId: organization.id, personId: person?.id ?? null };
}

export function storedResponses(needs: RecordsDependencies): StoredResponses {
  return {
    isOn: () => needs.responses.settings().store,
    resolve: (request, caller) => resolveReferences(needs, request, caller),
    find: (references, caller) => findReferences(needs, references, caller),
    saver: (request, maker) => saver(needs, request, maker),
  };
}

/** A conversation in the memory of this node. */
export interface History {
  items: readonly InputItem[];
  bytes: number;
}

/**
 * The request with its references resolved. `inMemory` is the conversation of its previous response, if this node has it.
 * Throws `previous_response_not_found`, `context_length_exceeded` or 503.
 */
export async function resolveReferences(
  dependencies: RecordsDependencies,
  request: ResponsesRequest,
  caller: Principal,
  inMemory: History | null = null,
): Promise<Resolved> {
  const keeps = caller.organization.keepsContent && dependencies.responses.settings().store;
  const wire = keeps ? request : { ...request, store: false };
  const references = referencesOf(wire);
  if (!refersTo(references)) return { wire, bytes: 0 };
  const { found, bytes } = inMemory
    ? await findOthers(dependencies, references, caller, inMemory)
    : await findReferences(dependencies, references, caller);
  const whole = withResolved(wire, found);
  await yieldFor(bytes);
  return { wire: whole, bytes };
}

/** The stored items to which the references refer, and their size. Throws the Faults of `resolveReferences`. */
async function findReferences(
  dependencies: RecordsDependencies,
  references: References,
  caller: Principal,
): Promise<{ found: Found; bytes: number }> {
  if (!caller.organization.keepsContent) throw keepsNothing(references);
  if (!dependencies.responses.settings().store) return { found: nothingFound(), bytes: 0 };
  const [history, referred] = await Promise.all([
    historyFound(dependencies, references.previousResponseId, readerOf(caller)),
    itemsFound(dependencies, references.items, readerOf(caller)),
  ]);
  return { found: { history: history.items, items: referred.items }, bytes: history.bytes + referred.bytes };
}

/** All stored items: those of the conversation in memory, and the others from the store. */
async function findOthers(
  dependencies: RecordsDependencies,
  { items: referred }: References,
  caller: Principal,
  inMemory: History,
): Promise<{ found: Found; bytes: number }> {
  const own = itemsById(inMemory.items);
  const others = { previousResponseId: null, items: referred.filter(({ id }) => !own.has(id)) };
  const stored = refersTo(others) ? await findReferences(dependencies, others, caller) : null;
  const items = new Map([...own, ...(stored?.found.items ?? [])]);
  return { found: { history: inMemory.items, items }, bytes: inMemory.bytes + (stored?.bytes ?? 0) };
}

function keepsNothing({ previousResponseId, items }: References): Fault {
  return new Fault(
    "previous_response_not_found",
    "Your organization keeps no content, so no response can be continued or referred to. Send the whole conversation as 'input'.",
    { param: previousResponseId === null ? items[0]!.param : "previous_response_id" },
  );
}

async function historyFound(dependencies: RecordsDependencies, id: string | null, reader: Reader) {
  if (id === null) return { items: [], bytes: 0 };
  const bytes_max = dependencies.limits.body_bytes_max;
  const turns = await lookUp(() => dependencies.responses.store.conversation(reader, id, bytes_max));
  if (turns === "not_found") return { items: null, bytes: 0 };
  if (turns === "too_long") throw tooLong("previous_response_id");
  const { parsed, bytes } = await parsedTurns(turns);
  return { items: historyOf([...parsed.values()]), bytes };
}

async function itemsFound(dependencies: RecordsDependencies, references: References["items"], reader: Reader) {
  const ids = references.flatMap(({ responseId }) => (responseId === null ? [] : [responseId]));
  const options = { inputs: references.some(({ id }) => isInputId(id)), bytes_max: dependencies.limits.body_bytes_max };
  const turns = ids.length === 0 ? [] : await lookUp(() => dependencies.responses.store.turns(reader, ids, options));
  if (turns === "too_long") throw tooLong("input");
  const { parsed, bytes } = await parsedTurns(turns);
  const items = new Map<string, InputItem>();
  for (const { id, responseId } of references) {
    const turn = responseId === null ? undefined : parsed.get(responseId);
    const item = turn && itemOf(turn, id);
    if (item) items.set(id, item);
  }
  return { items, bytes };
}

async function parsedTurns(turns: readonly KeptTurn[]) {
  const parsed = new Map<string, StoredTurn>();
  let bytes = 0;
  for (const { id, input, output } of turns) {
    parsed.set(id, { input: JSON.parse(input), output: JSON.parse(output) });
    const size = Buffer.byteLength(input) + Buffer.byteLength(output);
    bytes += size;
    await yieldFor(size);
  }
  return { parsed, bytes };
}

function tooLong(param: string): Fault {
  return new Fault(
    "context_length_exceeded",
    "The stored conversation exceeds the context window: it is larger than the limit of a request body. Start a new conversation with the items that you still need.",
    { param },
  );
}

/** Returns the function that stores the answer; null if the request forbids it. The function never throws. */
function saver(
  dependencies: RecordsDependencies,
  wire: ResponsesRequest,
  maker: Maker,
): ((answer: ResponseObject) => Promise<void>) | null {
  if (wire.store === false) return null;
  const { organization_bytes_max } = dependencies.responses.settings();
  return async (answer) => {
    try {
      const kept = keptOf(wire, answer);
      if (!kept) return;
      const work = dependencies.responses.store.keep(maker, kept, organization_bytes_max);
      if (!(await within(work, keep_ms_max, "the store of responses")))
        throw new Error(`larger than ${organization_bytes_max} bytes`);
    } catch (cause) {
      dependencies.log.event("warn", "response_unkept", { response_id: answer.id, cause: String(cause) });
    }
  };
}

function keptOf(wire: ResponsesRequest, answer: ResponseObject): KeptResponse | null {
  const turn = storable(wire, answer);
  if (!turn) return null;
  return {
    id: turn.id,
    previousId: turn.previousResponseId,
    input: JSON.stringify(turn.input),
    output: JSON.stringify(turn.output),
    response: JSON.stringify(turn.response),
  };
}

/** Waits for a look-up. Throws the fault that a client gets while the store is away. */
export async function lookUp<Value>(look: () => Promise<Value>): Promise<Value> {
  try {
    return await look();
  } catch (cause) {
    throw new Fault("storage_unavailable", "The service cannot look up stored responses now. Please try again.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
}
