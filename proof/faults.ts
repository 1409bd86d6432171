// The faults, each from outside alone: signals to processes, and connections that break.

import type { Chance } from "./chance.ts";
import type { Injury } from "./judge.ts";
import type { Link, Part } from "./target.ts";

export interface Scene {
  parts: readonly Part[];
  links: readonly Link[];
}

interface Fault {
  name: string;
  /** The node that suffers. Null: all of them. */
  node: string | null;
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

/** Every fault that the scene allows, so that a draw among them is a draw among kinds and places. */
export function faultsOf({ parts, links }: Scene): Fault[] {
  const ofParts = parts.flatMap((part) => {
    const node = part.kind === "node" ? part.name : null;
    return [
      { name: `kill ${part.name}`, node, begin: () => part.kill(), end: () => part.start() },
      { name: `freeze ${part.name}`, node, begin: () => part.freeze(), end: () => part.thaw() },
    ];
  });
  const ofLinks = links.flatMap(({ name, node, wire }) => [
    { name: `cut ${name}`, node, begin: () => wire.cut(), end: () => wire.mend() },
    { name: `break once ${name}`, node, begin: () => wire.shake(), end: () => undefined },
    { name: `hold up ${name}`, node, begin: () => wire.hold(), end: () => wire.mend() },
  ]);
  return [...ofParts, ...ofLinks];
}

/** Injects one fault after another, and answers with when each was. */
export async function injure(
  faults: readonly Fault[],
  count: number,
  chance: Chance,
  told: (name: string) => void,
): Promise<Injury[]> {
  const injuries: Injury[] = [];
  for (let done = 0; done < count; done++) {
    const fault = chance.pick(faults);
    // Most are shorter than any lease or time-out; some are longer.
    const length_ms = chance.fraction() < 0.8 ? chance.between(50, 800) : chance.between(2_500, 4_500);
    const injury = { node: fault.node, from_ms: Date.now(), until_ms: Number.POSITIVE_INFINITY };
    injuries.push(injury);
    told(fault.name);
    await fault.begin();
    await pause(length_ms);
    await fault.end();
    injury.until_ms = Date.now();
    await pause(chance.between(50, 500));
  }
  return injuries;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
