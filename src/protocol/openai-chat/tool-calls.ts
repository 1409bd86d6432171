/**
 * Fragments of tool calls → calls. The protocol says: `index` tells calls apart, the first fragment has id and name.
 * Engines keep to little of that: docs/design/protocols.md, Call fragments without order; docs/design/protocols.md,
 * Repeated and missing call ids. Another id is another call, a repeated one is not; without ids, a name after complete
 * arguments is another call.
 */
import { CallIds } from "../call-ids.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { assertFewParts } from "../parts-bound.ts";
import { ToolInput } from "../tool-input.ts";

export interface AssembledCall {
  callId: string;
  toolName: string;
  /** A call of a custom tool, which has plain text for arguments. */
  custom: boolean;
  /** Set by the owner of part numbers when the call starts. */
  partIndex: number;
}

export type AssemblyStep = { type: "start"; call: AssembledCall } | { type: "text"; call: AssembledCall; text: string };

interface Assembly extends AssembledCall {
  /** The id as the engine said it; null while it has said none. */
  wireId: string | null;
  /** Before it is named: what was written of its arguments. */
  written: string;
  /** Sees where its arguments end; of `unseen` pieces only when that is asked. */
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
    const known = byIndexAndId.get(`${index} ${id}`);
    if (known) return known;
    if (latest && latest.wireId === null && !latest.started) {
      latest.wireId = id;
      byIndexAndId.set(`${index} ${id}`, latest);
      return latest;
    }
    return begin(index, id);
  }

  return {
    calls,
    /** Whether a call was begun that never got a name. */
    get unnamed(): boolean {
      return calls.some((call) => !call.started);
    },
    /** `position` in the chunk's array stands in for a missing index. */
    push(fragment: JsonObject, position: number): AssemblyStep[] {
      const { isCustom, name, written } = spokenIn(fragment);
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

function spokenIn(fragment: JsonObject): { isCustom: boolean; name: string; written: string } {
  if (isObject(fragment.custom)) {
    const { name, input } = fragment.custom;
    return { isCustom: true, name: textOf(name), written: textOf(input) };
  }
  const { name, arguments: said } = isObject(fragment.function) ? fragment.function : ({} as JsonObject);
  const written = isObject(said) ? JSON.stringify(said) : textOf(said);
  return { isCustom: false, name: textOf(name), written };
}

function isComplete({ input, unseen }: Assembly): boolean {
  for (const piece of unseen.splice(0)) input.push(piece);
  return input.complete;
}
