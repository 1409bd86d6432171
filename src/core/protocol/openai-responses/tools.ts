/**
 * Maps the caller's tools to the functions that engines get, which have flat names: a namespace becomes part of the name. The
 * names are made only from the request, so that the encoder of the answer can map them back.
 */
import {
  type CustomTool,
  type FunctionTool,
  type HostedKind,
  hostedTools,
  type InputItem,
  type NamespaceTool,
  type ResponsesRequest,
  type ResponsesTool,
} from "./contract.ts";

export interface EngineTool {
  /** The name for engines: 1 to 64 letters, digits, `_` and `-`, which no other tool has. */
  name: string;
  tool: FunctionTool | CustomTool;
  within?: NamespaceTool;
}

/** Codex's own namespace: its tools are called by their bare names. */
const bareNamespace = "functions";

export class ToolBook {
  readonly tools: EngineTool[];
  readonly #byName = new Map<string, EngineTool>();
  readonly #byCaller = new Map<string, string>();
  /**
   * For a name that several tools have, the next number to append to it. Without this, a hostile list that gives one
   * name to a hundred thousand tools would make each search for a free number long.
   */
  readonly #ordinals = new Map<string, number>();

  /** If several tools have one name, the last one is used. */
  constructor(listed: readonly ResponsesTool[]) {
    const latest = new Map<string, Omit<EngineTool, "name">>();
    for (const tool of listed) {
      if (tool.type === "namespace")
        for (const inner of tool.tools) latest.set(keyOf(inner.name, tool.name), { tool: inner, within: tool });
      else if (!isHosted(tool)) latest.set(keyOf(tool.name), { tool });
    }
    this.tools = [...latest].map(([key, listedTool]) => {
      const entry = { ...listedTool, name: this.#freeName(flat(listedTool.tool.name, listedTool.within?.name)) };
      this.#byName.set(entry.name, entry);
      this.#byCaller.set(key, entry.name);
      return entry;
    });
  }

  /**
   * The name under which engines know a tool. A tool that is not listed gets the name that it would have if it were.
   */
  nameOf(name: string, namespace?: string | null): string {
    return this.#byCaller.get(keyOf(name, namespace)) ?? flat(name, namespace);
  }

  has(name: string, namespace?: string | null): boolean {
    return this.#byCaller.has(keyOf(name, namespace));
  }

  /** The tool that an engine calls by this name. */
  toolOf(name: string): EngineTool | undefined {
    return this.#byName.get(name);
  }

  #freeName(preferred: string): string {
    if (!this.#byName.has(preferred)) return preferred;
    let name = preferred;
    let ordinal = this.#ordinals.get(preferred) ?? 2;
    for (; this.#byName.has(name); ordinal += 1) {
      const tail = `_${ordinal}`;
      name = preferred.slice(0, nameChars_max - tail.length) + tail;
    }
    this.#ordinals.set(preferred, ordinal);
    return name;
  }
}

const nameChars_max = 64;
const invalidCharacters = /[^a-zA-Z0-9_-]/g;
const flatNames = /^[a-zA-Z0-9_-]{0,64}$/;

function flat(name: string, namespace?: string | null): string {
  const whole = namespace && namespace !== bareNamespace ? `${namespace}__${name}` : name;
  return flatNames.test(whole) ? whole : whole.replace(invalidCharacters, "_").slice(0, nameChars_max);
}

/**
 * The key of a tool by name and namespace. The namespace's length is part of the key, so that no two tools have the
 * same key.
 */
function keyOf(name: string, namespace?: string | null): string {
  const within = namespace && namespace !== bareNamespace ? namespace : "";
  return `${within.length} ${within}${name}`;
}

/** The namespace to write into the item of a call; undefined if the tool has none. */
export function namespaceOf({ within }: EngineTool): string | undefined {
  return within && within.name !== bareNamespace ? within.name : undefined;
}

export function isHosted(tool: ResponsesTool): tool is { type: HostedKind } {
  return Object.hasOwn(hostedTools, tool.type);
}

/** The tools in the request's `tools`, then those in its items. */
export function listedTools(
  wire: Pick<ResponsesRequest, "tools">,
  items: readonly { item: InputItem }[],
): ResponsesTool[] {
  const added = items.flatMap(({ item }) => (item.type === "additional_tools" ? item.tools : []));
  return [...(wire.tools ?? []), ...added];
}
