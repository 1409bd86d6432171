/**
 * Tools as the caller knows them, and as engines are told of them: functions with one flat name each. Namespaces become
 * part of the name, custom tools take their text as one string. The names are made from the request alone, so that the
 * writer of the answer finds the way back from the same request.
 */

import type { InputItem } from "./contract.ts";
import {
  type CustomTool,
  type FunctionTool,
  type HostedKind,
  hostedTools,
  type NamespaceTool,
  type ResponsesRequest,
  type ResponsesTool,
} from "./contract.ts";

export interface ToldTool {
  /** As engines know it: 1 to 64 letters, digits, `_` and `-`, and nobody else's. */
  name: string;
  tool: FunctionTool | CustomTool;
  within?: NamespaceTool;
}

/** Codex's own namespace: its tools are called by their bare names. */
const bareNamespace = "functions";

export class ToolBook {
  readonly tools: ToldTool[];
  readonly #byName = new Map<string, ToldTool>();
  readonly #byCaller = new Map<string, string>();
  /** Where to go on looking: a hostile list gives a hundred thousand tools one name. */
  readonly #ordinals = new Map<string, number>();

  /** A tool that is listed again is meant as it was listed last. */
  constructor(listed: readonly ResponsesTool[]) {
    const latest = new Map<string, Omit<ToldTool, "name">>();
    for (const tool of listed) {
      if (tool.type === "namespace")
        for (const inner of tool.tools) latest.set(keyOf(inner.name, tool.name), { tool: inner, within: tool });
      else if (!isHosted(tool)) latest.set(keyOf(tool.name), { tool });
    }
    this.tools = [...latest].map(([key, told]) => {
      const entry = { ...told, name: this.#freeName(flat(told.tool.name, told.within?.name)) };
      this.#byName.set(entry.name, entry);
      this.#byCaller.set(key, entry.name);
      return entry;
    });
  }

  /** The engine's name of what the caller calls so; of a tool that is not listed (any more) what it would be. */
  nameOf(name: string, namespace?: string | null): string {
    return this.#byCaller.get(keyOf(name, namespace)) ?? flat(name, namespace);
  }

  has(name: string, namespace?: string | null): boolean {
    return this.#byCaller.has(keyOf(name, namespace));
  }

  /** What an engine's call means to the caller. */
  told(name: string): ToldTool | undefined {
    return this.#byName.get(name);
  }

  #freeName(wanted: string): string {
    if (!this.#byName.has(wanted)) return wanted;
    let name = wanted;
    let ordinal = this.#ordinals.get(wanted) ?? 2;
    for (; this.#byName.has(name); ordinal += 1) {
      const tail = `_${ordinal}`;
      name = wanted.slice(0, nameChars_max - tail.length) + tail;
    }
    this.#ordinals.set(wanted, ordinal);
    return name;
  }
}

const nameChars_max = 64;
const strangers = /[^a-zA-Z0-9_-]/g;

function flat(name: string, namespace?: string | null): string {
  const whole = namespace && namespace !== bareNamespace ? `${namespace}__${name}` : name;
  return whole.replace(strangers, "_").slice(0, nameChars_max);
}

/** The length tells where the one ends and the other begins. */
function keyOf(name: string, namespace?: string | null): string {
  const within = namespace && namespace !== bareNamespace ? namespace : "";
  return `${within.length} ${within}${name}`;
}

/** What a call's item says of its namespace. */
export function namespaceOf({ within }: ToldTool): string | undefined {
  return within && within.name !== bareNamespace ? within.name : undefined;
}

export function isHosted(tool: ResponsesTool): tool is { type: HostedKind } {
  return Object.hasOwn(hostedTools, tool.type);
}

/** Those of `tools`, then those that items bring. */
export function listedTools(
  wire: Pick<ResponsesRequest, "tools">,
  items: readonly { item: InputItem }[],
): ResponsesTool[] {
  const added = items.flatMap(({ item }) => (item.type === "additional_tools" ? item.tools : []));
  return [...(wire.tools ?? []), ...added];
}
