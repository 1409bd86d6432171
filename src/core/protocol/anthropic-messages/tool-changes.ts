/**
 * The tools that the model may call: the listed ones, with the additions and removals of system messages in the order
 * of the conversation. Most engines get the tools in force at the end of the conversation: docs/design/protocols.md,
 * Tools in force.
 */
import { describe, invalid, type Violation } from "../violation.ts";
import type { CountTokensRequest, MessagesTool, ToolAdditionBlockParam, ToolRemovalBlockParam } from "./contract.ts";
import { ownerOf } from "./tools.ts";

type Conversation = Pick<CountTokensRequest, "tools" | "messages">;

interface ToolChange {
  block: ToolAdditionBlockParam | ToolRemovalBlockParam;
  param: string;
}

export function changesIn({ messages }: Pick<Conversation, "messages">): ToolChange[] {
  const changes: ToolChange[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (message.role !== "system" || !Array.isArray(message.content)) continue;
    for (let place = 0; place < message.content.length; place++) {
      const block = message.content[place]!;
      if (block.type !== "text") changes.push({ block, param: `messages[${at}].content[${place}]` });
    }
  }
  return changes;
}

export interface ListedTool {
  tool: MessagesTool;
  param: string;
}

/** The tools that changes define, including those that are not in force at the end of the conversation. */
export function definedBy(changes: readonly ToolChange[]): ListedTool[] {
  return changes.flatMap(({ block: { tool }, param }) =>
    tool.type === "tool_definition" ? [{ tool: tool.definition, param: `${param}.tool.definition` }] : [],
  );
}

/**
 * The tools in force at the end of the conversation. Changes that cannot be made are skipped here. Other code refuses a
 * request for an answer because of them, but not a request for a count.
 */
export function toolsInForce(
  { tools, messages }: Conversation,
  changes: readonly ToolChange[] = changesIn({ messages }),
): readonly MessagesTool[] {
  const listed = tools ?? [];
  if (changes.length === 0) return listed;
  const table = new ToolTable(listed);
  for (const change of changes) table.make(change);
  return table.inForce;
}

export function brokenChange({ tools }: Conversation, changes: readonly ToolChange[]): Violation | null {
  const table = new ToolTable(tools ?? []);
  for (const change of changes) {
    const broken = table.make(change);
    if (broken) return broken;
  }
  return null;
}

interface ToolEntry {
  tool: MessagesTool;
  isOffered: boolean;
}

class ToolTable {
  readonly #all: ToolEntry[] = [];
  readonly #byName = new Map<string, ToolEntry>();

  constructor(listed: readonly MessagesTool[]) {
    for (const tool of listed) this.#offer(tool);
  }

  get inForce(): MessagesTool[] {
    return this.#all.filter(({ isOffered }) => isOffered).map(({ tool }) => tool);
  }

  /**
   * Adds a tool, or replaces the tool of the same name. Only tools of servers lack a name, and nothing refers to those.
   */
  #offer(tool: MessagesTool): void {
    const earlier = this.#byName.get(tool.name ?? "");
    if (earlier) {
      earlier.tool = tool;
      earlier.isOffered = true;
      return;
    }
    const entry: ToolEntry = { tool, isOffered: true };
    this.#all.push(entry);
    if (tool.name) this.#byName.set(tool.name, entry);
  }

  make({ block, param }: ToolChange): Violation | null {
    const { tool } = block;
    if (tool.type === "tool_definition") {
      const entry = this.#byName.get(tool.definition.name ?? "");
      if (entry && ownerOf(entry.tool).family !== ownerOf(tool.definition).family) {
        const found = describe(tool.definition.name);
        const words = `must not be the name of an earlier tool of another type, but is ${found}. Choose another name.`;
        return invalid(`${param}.tool.definition.name`, words);
      }
      this.#offer(tool.definition);
      return null;
    }
    const entry = this.#byName.get(tool.name);
    if (!entry)
      return invalid(
        `${param}.tool.name`,
        `must be the name of a tool in 'tools', or in an earlier 'tool_addition', but is ${describe(tool.name)}. Define the tool there first.`,
      );
    entry.isOffered = block.type === "tool_addition";
    return null;
  }
}
