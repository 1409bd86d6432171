// The faults, each from outside alone: signals to processes, and connections that break.

import type { Chance } from "./chance.ts";
import type { Injury } from "./judge.ts";
import { pause } from "./pause.ts";
import type { Link, Part } from "./target.ts";

export interface Scene {
  parts: readonly Part[];
  links: readonly Link[];
}

interface Fault {
  kind: "kill" | "freeze" | "cut" | "break once" | "hold up";
  /** The kind and the place. */
  name: string;
  /** The node that suffers. Null: all of them. */
  node: string | null;
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

/** Every fault that the scene allows. */
export function faultsOf({ parts, links }: Scene): Fault[] {
  const ofParts = parts.flatMap((part) => {
    const at = (kind: Fault["kind"], begin: Fault["begin"], end: Fault["end"]) =>
      faultOf(kind, part.name, part.kind === "node" ? part.name : null, begin, end);
    return [at("kill", part.kill, part.start), at("freeze", part.freeze, part.thaw)];
  });
  const ofLinks = links.flatMap(({ name, node, wire }) => {
    const at = (kind: Fault["kind"], begin: Fault["begin"], end: Fault["end"]) => faultOf(kind, name, node, begin, end);
    return [
      at("cut", wire.cut, wire.mend),
      at("break once", wire.shake, () => undefined),
      at("hold up", wire.hold, wire.mend),
    ];
  });
  return [...ofParts, ...ofLinks];
}

function faultOf(kind: Fault["kind"], place: string, node: string | null, begin: Fault["begin"], end: Fault["end"]) {
  return { kind, name: `${kind} ${place}`, node, begin, end };
}

/** Kinds are as likely as each other: there are many more links to cut than nodes to kill. */
function drawn(faults: readonly Fault[], chance: Chance): Fault {
  const kinds = [...Map.groupBy(faults, ({ kind }) => kind).values()];
  return chance.pick(chance.pick(kinds));
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
    const fault = drawn(faults, chance);
    // Most are shorter than any lease or time-out; some are longer.
    const length_ms = chance.fraction() < 0.8 ? chance.between(50, 800) : chance.between(2_500, 4_500);
    const injury = { fault: fault.name, node: fault.node, from_ms: Date.now(), until_ms: Number.POSITIVE_INFINITY };
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
