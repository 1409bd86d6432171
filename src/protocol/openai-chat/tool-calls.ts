/**
 * Fragments of tool calls → calls. The protocol says: `index` tells calls apart, the first fragment has id and name.
 * Engines keep to little of that: docs/design/protocols.md, Call fragments without order; docs/design/protocols.md,
 * Repeated and missing call ids. Another id is another call, a repeated one is not; without ids, a name after complete
 * arguments is another call.
 */
import { isObject, type JsonObject, textOf } from "../json.ts";

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
  written: string;
  started: boolean;
}

export type ToolCallAssembly = ReturnType<typeof toolCallAssembly>;

export function toolCallAssembly(responseId: string) {
  const calls: Assembly[] = [];
  const latestAt = new Map<number, Assembly>();
  const byIndexAndId = new Map<string, Assembly>();
  const usedIds = new Set<string>();

  function begin(index: number, id: string): Assembly {
    const call: Assembly = {
      callId: "",
      toolName: "",
      custom: false,
      partIndex: -1,
      wireId: id || null,
      written: "",
      started: false,
    };
    calls.push(call);
    latestAt.set(index, call);
    if (id) byIndexAndId.set(`${index} ${id}`, call);
    return call;
  }

  function find(index: number, id: string, name: string): Assembly {
    const latest = latestAt.get(index);
    if (!id) return latest && !(name && latest.started && isComplete(latest.written)) ? latest : begin(index, id);
    const known = byIndexAndId.get(`${index} ${id}`);
    if (known) return known;
    if (latest && latest.wireId === null && !latest.started) {
      latest.wireId = id;
      byIndexAndId.set(`${index} ${id}`, latest);
      return latest;
    }
    return begin(index, id);
  }

  function uniqueId(call: Assembly): string {
    const base = call.wireId ?? `call_${responseId.slice(-32)}`;
    let id = call.wireId ?? `${base}_0`;
    for (let ordinal = 1; usedIds.has(id); ordinal += 1) id = `${base}_${ordinal}`;
    usedIds.add(id);
    return id;
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
      call.written += written;
      if (call.started) return written ? [{ type: "text", call, text: written }] : [];
      if (!name) return [];
      call.started = true;
      call.custom = isCustom;
      call.toolName = name;
      call.callId = uniqueId(call);
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

function isComplete(written: string): boolean {
  if (!written.trimEnd().endsWith("}")) return false;
  try {
    JSON.parse(written);
    return true;
  } catch {
    return false;
  }
}
