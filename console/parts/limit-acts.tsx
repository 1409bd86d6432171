/** The actions that change the limits of an organization, a team, a person or a key. */
import type { VerbName } from "../core/client.ts";
import type { Field } from "../core/form.ts";
import { type Limits, typedLimits, valueFields } from "../core/limit-fields.ts";
import { may } from "../core/session.ts";
import { Act } from "./act.tsx";

const verbs = {
  organization: "updateOrganizationLimits",
  team: "updateTeamLimits",
  person: "updatePersonLimits",
  key: "updateKeyLimits",
} as const satisfies Record<Limits["subject"], VerbName>;

/** The members of the input that say whose limits they are. */
function subjectOf({ subject, subject_id, organization }: Limits): Record<string, string> {
  if (subject === "organization") return { organization };
  if (subject === "person") return { organization, person: subject_id };
  return { [subject === "key" ? "id" : "team"]: subject_id };
}

const pattern: Field = { name: "models", label: "Models", kind: "text", isRequired: true, hint: "An ID, or openai/*" };
const until: Field = { name: "until", label: "Ends on", kind: "day", isRequired: true };
const inherits = "An empty field says nothing, so that what is inherited counts; none: not limited here.";

interface Props {
  of: Limits;
  changed: () => void;
}

/** The parts that all limit forms of one subject have in common, and the beginnings of their commands. */
function common({ of: limits, changed }: Props) {
  const { subject, subject_id, organization, version } = limits;
  const whose = subject === "organization" ? `org ${organization}` : `${subject} ${subject_id} --org ${organization}`;
  return {
    act: {
      verb: verbs[subject],
      given: { ...subjectOf(limits), version },
      done: "The limits were changed.",
      onDone: changed,
    },
    set: (value: unknown, more = "") =>
      `sluice limit set ${whose} ${typedLimits(value as Record<string, unknown>)}${more}`,
    raise: `sluice limit raise ${whose}`,
  };
}

/** The two buttons that are needed most, to set and to raise limits; they also fit into the row of a list. */
export function LimitActs({ of: limits, changed }: Props) {
  const { act, set, raise } = common({ of: limits, changed });
  if (!may(act.verb)) return null;
  return (
    <span class="acts">
      <Act
        {...act}
        label="Set limits"
        fields={valueFields("own", limits.own)}
        says={inherits}
        typed={({ own }) => set(own)}
      />
      <Act
        {...act}
        label="Temporary increase"
        fields={[...valueFields("limits", null), until]}
        says="Applies now, and ends on the day that you choose. Each limit has to be above the one that it has now."
        sends={({ limits: raised = {}, until: end, ...rest }) => ({ ...rest, raise: { limits: raised, until: end } })}
        typed={(input) => {
          const { limits: raised, until: end } = (input.raise ?? {}) as Record<string, never>;
          return `${raise} ${typedLimits(raised)} --until ${end ?? "DAY"}`;
        }}
        done="The limits are increased."
      />
      {limits.raises.length > 0 && (
        <Act
          {...act}
          label="End increase"
          given={{ ...act.given, raise: null }}
          says="The limits below it count again, for running requests too."
          typed={() => `${raise} --end`}
          done="The increase has ended."
        />
      )}
    </span>
  );
}

/** The less common acts, for the subject's own page. */
export function OtherLimitActs({ of: limits, changed }: Props) {
  const { act, set } = common({ of: limits, changed });
  if (!may(act.verb)) return null;
  const hasOthers = limits.subject === "organization" || limits.subject === "team";
  return (
    <>
      {hasOthers && (
        <>
          <Act
            {...act}
            label="Limits of each key"
            fields={valueFields("keys", limits.keys)}
            says={`What keys get that have nothing of their own. ${inherits}`}
            typed={({ keys }) => set(keys, " --keys")}
          />
          <Act
            {...act}
            label="Limits of each person"
            fields={valueFields("members", limits.members)}
            says={`What people get who have nothing of their own. ${inherits}`}
            typed={({ members }) => set(members, " --members")}
          />
        </>
      )}
      <Act
        {...act}
        label="Limits for models"
        fields={[pattern, ...valueFields("value", null)]}
        says="Beside its other limits, for these models alone. With nothing filled in, the pattern is taken away."
        sends={({ models, value = null, ...rest }) => ({ ...rest, models: { [String(models ?? "")]: value } })}
        typed={({ models }) => {
          const [[name, value] = ["", null]] = Object.entries((models ?? {}) as Record<string, unknown>);
          return set(value, ` --models ${name === "" ? "PATTERN" : `'${name}'`}`);
        }}
      />
    </>
  );
}
