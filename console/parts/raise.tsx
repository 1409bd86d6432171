/** Raises: limits that count until an instant, and the acts that set and end one. */
import type { Answer, Input } from "../core/client.ts";
import { type Field, type LimitName, limitFields, limitNames } from "../core/form.ts";
import { grouped } from "../core/format.ts";
import { Act } from "./act.tsx";
import { LimitWords } from "./limit-words.tsx";
import { Time } from "./time.tsx";

type Raise = Answer<"findTeam">["raise"];
type Limits = Record<LimitName, number | null>;

/** Limits, and to what some of them are raised and until when. */
export function RaisedLimits({ of: limits, raise }: { of: Limits | null; raise: Raise }) {
  return (
    <>
      <LimitWords of={limits} />
      {raise && (
        <span class="fine">
          {" "}
          (<RaiseWords of={raise} />)
        </span>
      )}
    </>
  );
}

export function RaiseWords({ of: raise }: { of: NonNullable<Raise> }) {
  return (
    <>
      raised to <LimitWords of={raise.limits} />, until <Time at={raise.until} />
    </>
  );
}

interface Raising<Name extends RaiseVerb> {
  verb: Name;
  given: Partial<Input<Name>>;
  raise: Raise;
  /** Those that stand below: what is not limited cannot be raised. Null: the page does not know them. */
  limits: Limits | null;
  changed: () => void;
}
type RaiseVerb = "raiseKey" | "raiseTeam" | "raiseOrganization";

export function RaiseActs<Name extends RaiseVerb>({ verb, given, raise, limits, changed }: Raising<Name>) {
  const raisable = limitNames.filter((name) => limits === null || limits[name] !== null);
  if (raisable.length === 0) return null;
  const isRaisable = ({ name }: Field) => raisable.some((one) => name === `limits.${one}`);
  const amounts = limitFields("limits", null)
    .filter(isRaisable)
    .map((field) => {
      const now = limits?.[field.name.replace("limits.", "") as LimitName];
      return now == null ? field : { ...field, hint: `Above ${grouped(now)}` };
    });
  const until: Field = {
    name: "until",
    label: "Until",
    kind: "day",
    isRequired: true,
    hint: "When this day begins, UTC",
  };
  return (
    <>
      <Act
        label="Raise"
        verb={verb}
        given={given}
        fields={[...amounts, until]}
        says={`Until then these count at once, and then the limits of now again${raise ? ". They take the place of the raise that there is" : ""}.`}
        done="The limits are raised."
        onDone={changed}
      />
      {raise && (
        <Act
          label="End raise"
          verb={verb}
          given={{ ...given, end: true }}
          says="The limits below count again, for running requests too."
          done="The raise has ended."
          onDone={changed}
        />
      )}
    </>
  );
}
