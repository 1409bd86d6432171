// The faults, all of which are injected from outside the programs: signals to processes, and broken connections.

import type { Chance } from "./chance.ts";
import type { Injury } from "./judge.ts";
import { pause } from "./pause.ts";
import type { Link, Part } from "./target.ts";

export interface Scene {
  parts: readonly Part[];
  /** The connections between the gateway and its stores. */
  inside: readonly Link[];
  /** The connections between clients and the gateway, and between the gateway and its engine. */
  outside: readonly Link[];
}

interface Fault extends Pick<Injury, "place" | "node"> {
  kind: "kill" | "freeze" | "cut" | "break once" | "hold up";
  /** The kind of the fault, and the name of the program or link that it hits. */
  name: string;
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

/** All faults that are possible in this scene. */
export function faultsOf({ parts, inside, outside }: Scene): Fault[] {
  return [
    ...parts.flatMap(faultsOfPart),
    ...inside.flatMap((link) => faultsOfLink(link, "store")),
    ...outside.flatMap((link) => faultsOfLink(link, "outside")),
  ];
}

function faultsOfPart({ name, kind, kill, start, freeze, thaw }: Part): Fault[] {
  const at = { place: kind, node: kind === "node" ? name : null };
  return [
    { ...at, kind: "kill", name: `kill ${name}`, begin: kill, end: start },
    { ...at, kind: "freeze", name: `freeze ${name}`, begin: freeze, end: thaw },
  ];
}

function faultsOfLink({ name, node, wire }: Link, place: Injury["place"]): Fault[] {
  return [
    { place, node, kind: "cut", name: `cut ${name}`, begin: wire.cut, end: wire.mend },
    { place, node, kind: "break once", name: `break once ${name}`, begin: wire.shake, end: () => undefined },
    { place, node, kind: "hold up", name: `hold up ${name}`, begin: wire.hold, end: wire.mend },
  ];
}

/** Draws a fault. Each kind has the same probability, because there are many more links to cut than nodes to kill. */
function drawn(faults: readonly Fault[], chance: Chance): Fault {
  const kinds = [...Map.groupBy(faults, ({ kind }) => kind).values()];
  return chance.pick(chance.pick(kinds));
}

/** Injects one fault after another. Returns the times at which each began and ended. */
export async function injure(
  faults: readonly Fault[],
  count: number,
  chance: Chance,
  told: (name: string) => void,
): Promise<Injury[]> {
  const injuries: Injury[] = [];
  for (let done = 0; done < count; done++) {
    const fault = drawn(faults, chance);
    // Most faults are shorter than any lease or timeout; some are longer.
    const length_ms = chance.fraction() < 0.8 ? chance.between(50, 800) : chance.between(2_500, 4_500);
    const { name, place, node } = fault;
    const injury = { fault: name, place, node, from_ms: Date.now(), until_ms: Number.POSITIVE_INFINITY };
    injuries.push(injury);
    told(name);
    await fault.begin();
    await pause(length_ms);
    await fault.end();
    injury.until_ms = Date.now();
    await pause(chance.between(50, 500));
  }
  return injuries;
}
