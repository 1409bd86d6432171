/**
 * Assembles tool calls from their fragments. In the protocol, `index` distinguishes calls, and the first fragment has id and
 * name. Engines often break this: docs/design/protocols.md, Call fragments without order; docs/design/protocols.md,
 * Repeated and missing call ids. A new id begins a call, a repeated one does not. Without ids, a name after complete arguments
 * begins a call.
 */
import { CallIds } from "../call-ids.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { assertFewParts } from "../parts-bound.ts";
import { ToolInput } from "../tool-input.ts";

interface AssembledCall {
  callId: string;
  toolName: string;
  /** Set for a custom tool, whose arguments are plain text. */
  custom: boolean;
  /** Set by the owner of part numbers when the call starts. */
  partIndex: number;
}

type AssemblyStep = { type: "start"; call: AssembledCall } | { type: "text"; call: AssembledCall; text: string };

interface Assembly extends AssembledCall {
  /** The engine's id; null while there is none. */
  wireId: string | null;
  /** The arguments that came before the name. */
  written: string;
  /** Detects the end of the arguments. It reads the `unseen` pieces only when that is needed. */
  input: ToolInput;
  unseen: string[];
  started: boolean;
}

export type ToolCallAssembly = ReturnType<typeof toolCallAssembly>;

export function toolCallAssembly(responseId: string) {
  const calls: Assembly[] = [];
  const latestAt = new Map<number, Assembly>();
  const byIndexAndId = new Map<string, Assembly>();
  const ids = new CallIds(`call_${responseId.slice(-32)}`);

  function begin(index: number, id: string): Assembly {
    const call: Assembly = {
      callId: "",
      toolName: "",
      custom: false,
      partIndex: -1,
      wireId: id || null,
      written: "",
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

  function find(index: number, id: string, name: string): Assembly {
    const latest = latestAt.get(index);
    if (!id) return latest && !(name && latest.started && isComplete(latest)) ? latest : begin(index, id);
    const earlier = byIndexAndId.get(`${index} ${id}`);
    if (earlier) return earlier;
    if (latest && latest.wireId === null && !latest.started) {
      latest.wireId = id;
      byIndexAndId.set(`${index} ${id}`, latest);
      return latest;
    }
    return begin(index, id);
  }

  return {
    calls,
    /** Reports whether a call has begun that has no name. */
    get unnamed(): boolean {
      return calls.some((call) => !call.started);
    },
    /** `position`, in the chunk's array, replaces a missing index. */
    push(fragment: JsonObject, position: number): AssemblyStep[] {
      const { isCustom, name, written } = contentOf(fragment);
      const index = Number.isInteger(fragment.index) ? Number(fragment.index) : position;
      const call = find(index, textOf(fragment.id), name);
      if (written) call.unseen.push(written);
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

function contentOf(fragment: JsonObject): { isCustom: boolean; name: string; written: string } {
  if (isObject(fragment.custom)) {
    const { name, input } = fragment.custom;
    return { isCustom: true, name: textOf(name), written: textOf(input) };
  }
  const { name, arguments: args } = isObject(fragment.function) ? fragment.function : ({} as JsonObject);
  const written = isObject(args) ? JSON.stringify(args) : textOf(args);
  return { isCustom: false, name: textOf(name), written };
}

function isComplete({ input, unseen }: Assembly): boolean {
  for (const piece of unseen.splice(0)) input.push(piece);
  return input.complete;
}
