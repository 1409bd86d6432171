/** Suspends an organization or a person, and resumes what is suspended. */
import type { Input } from "../core/client.ts";
import { Act } from "./act.tsx";

interface Props<Kind extends "Organization" | "Person"> {
  kind: Kind;
  state: string;
  given: Input<`suspend${Kind}`>;
  /** The name of the organization or the person, which has to be typed to suspend it. */
  name: string;
  /** The effects of suspending and of resuming, in a sentence each. */
  ends: string;
  resumes: string;
  changed: () => void;
}

export function Suspension<Kind extends "Organization" | "Person">(of: Props<Kind>) {
  const { kind, state, given, name, ends, resumes, changed } = of;
  if (state === "active") {
    return (
      <Act
        label="Suspend"
        verb={`suspend${kind}`}
        given={given}
        ends={{ name, what: ends }}
        done={`${name} is suspended.`}
        onDone={changed}
      />
    );
  }
  if (state !== "suspended") return null;
  return (
    <Act
      label="Resume"
      verb={`resume${kind}`}
      given={given as Input<`resume${Kind}`>}
      says={resumes}
      done={`${name} is resumed.`}
      onDone={changed}
    />
  );
}
