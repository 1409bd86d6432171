/**
 * Assembles tool calls from their fragments. In the protocol, `index` distinguishes calls, and the first fragment has
 * id and name. Engines often deviate: docs/design/protocols.md, Call fragments without order; docs/design/protocols.md,
 * Repeated and missing call ids.
 *
 * A name begins a call, unless it repeats the name of a call whose arguments are not complete. A fragment without a
 * name belongs to the call with its index or its id, or else to the latest call: some engines change the index and the
 * id between the name and the arguments.
 */
import { assertFewParts } from "../answer.ts";
import { CallIds } from "../call-ids.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { ToolInput } from "../tool-input.ts";

interface AssembledCall {
  callId: string;
  toolName: string;
  /** Whether the tool is a custom one, whose arguments are plain text. */
  custom: boolean;
  /**
   * The index of the call among the answer's parts. The code that numbers the parts sets the index when the call
   * starts.
   */
  partIndex: number;
}

type AssemblyStep = { type: "start"; call: AssembledCall } | { type: "text"; call: AssembledCall; text: string };

interface Assembly extends AssembledCall {
  /** The engine's id of the call; null until the engine sends one. */
  wireId: string | null;
  /** The arguments that arrived before the call's name. */
  written: string;
  isWritten: boolean;
  /** Detects the end of the arguments. It gets the pieces in `unseen` only when the end has to be known. */
  input: ToolInput;
  unseen: string[];
  started: boolean;
}

export type ToolCallAssembly = ReturnType<typeof toolCallAssembly>;

interface Fragment {
  index: number;
  id: string;
  name: string;
  written: string;
}

export function toolCallAssembly(responseId: string) {
  const calls: Assembly[] = [];
  const latestAt = new Map<number, Assembly>();
  const byIndexAndId = new Map<string, Assembly>();
  const ids = new CallIds(`call_${responseId.slice(-32)}`);
  /** The call to which the latest fragment belongs, and the index in that fragment. */
  let latest: Assembly | undefined;
  let latestIndex = 0;

  function begin({ index, id }: Fragment): Assembly {
    const call: Assembly = {
      callId: "",
      toolName: "",
      custom: false,
      partIndex: -1,
      wireId: id || null,
      written: "",
      isWritten: false,
      input: new ToolInput(),
      unseen: [],
      started: false,
    };
    calls.push(call);
    assertFewParts(calls.length);
    latestAt.set(index, call);
    if (id) byIndexAndId.set(`${index} ${id}`, call);
    return call;
  }

  function find(fragment: Fragment): Assembly {
    const { index, id, name } = fragment;
    const same = id ? byIndexAndId.get(`${index} ${id}`) : undefined;
    if (same) return same;
    const here = latestAt.get(index);
    if (here && !here.started && (!id || !name || here.wireId === null)) return identified(here, fragment);
    return (name ? repeated(fragment, here) : continued(fragment, here)) ?? begin(fragment);
  }

  function repeated({ id, name }: Fragment, here: Assembly | undefined): Assembly | undefined {
    if (!here || here.toolName !== name || (id !== "" && here.custom)) return undefined;
    return isComplete(here) ? undefined : here;
  }

  /**
   * Finds the call that a fragment without a name continues. Undefined if the fragment begins a new call: its id is
   * new, and the earlier call's arguments are complete.
   */
  function continued({ index, id, written }: Fragment, here: Assembly | undefined): Assembly | undefined {
    // In the usual case, the arguments need not be looked at.
    if (here && here === latest && !id) return here;
    if (here && !isComplete(here)) return here;
    const named = id ? calls.findLast((call) => call.wireId === id) : undefined;
    const open = named ?? (written === "" ? undefined : latest);
    if (open?.started && !isComplete(open) && !(here && rest.test(written))) {
      latestAt.set(index, open);
      return open;
    }
    return id ? undefined : here;
  }

  function identified(call: Assembly, { index, id }: Fragment): Assembly {
    if (id && call.wireId === null) {
      call.wireId = id;
      byIndexAndId.set(`${index} ${id}`, call);
    }
    return call;
  }

  return {
    get started(): Assembly[] {
      return calls.filter((call) => call.started);
    },
    /** Whether a call has arguments but no name. */
    get unnamed(): boolean {
      return calls.some((call) => !call.started && call.written !== "");
    },
    get unfinished(): boolean {
      return calls.some((call) => call.started && !call.custom && call.isWritten && !isComplete(call));
    },
    /**
     * Takes the calls in a chunk. `position` in the chunk's array stands for a missing index. `isAlone`: the chunk has
     * a single fragment, which may belong to the latest call.
     */
    push(wire: JsonObject, position: number, isAlone: boolean): AssemblyStep[] {
      const { isCustom, name, written } = contentOf(wire);
      const missing = isAlone && latest ? latestIndex : position;
      const index = Number.isInteger(wire.index) ? Number(wire.index) : missing;
      const call = find({ index, id: textOf(wire.id), name, written });
      [latest, latestIndex] = [call, index];
      if (written) {
        call.unseen.push(written);
        call.isWritten = true;
      }
      if (call.started) return written ? [{ type: "text", call, text: written }] : [];
      call.written += written;
      if (!name) return [];
      call.started = true;
      call.custom = isCustom;
      call.toolName = name;
      call.callId = ids.unique(call.wireId ?? "");
      const start: AssemblyStep = { type: "start", call };
      return call.written ? [start, { type: "text", call, text: call.written }] : [start];
    },
  };
}

/** The blanks and surplus braces that engines write after complete arguments. */
const rest = /^[\s}\]]*$/;

function contentOf(fragment: JsonObject): { isCustom: boolean; name: string; written: string } {
  if (isObject(fragment.custom)) {
    const { name, input } = fragment.custom;
    return { isCustom: true, name: textOf(name).toWellFormed(), written: textOf(input) };
  }
  const { name, arguments: args } = isObject(fragment.function) ? fragment.function : ({} as JsonObject);
  const written = isObject(args) ? JSON.stringify(args) : textOf(args);
  return { isCustom: false, name: textOf(name).toWellFormed(), written };
}

function isComplete({ input, unseen }: Assembly): boolean {
  for (const piece of unseen.splice(0)) input.push(piece);
  return input.complete;
}
