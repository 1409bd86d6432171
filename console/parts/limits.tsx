/** Limits of organizations, teams, people and keys: what is in force, where it comes from, and the acts that change it. */
import type { VerbName } from "../core/client.ts";
import { type Field, limitNames } from "../core/form.ts";
import { wordsOf } from "../core/format.ts";
import { amountWords, type Limits, typedLimits, type Value, valueFields } from "../core/limit-fields.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Act } from "./act.tsx";
import { Show } from "./asked.tsx";
import { List } from "./list.tsx";
import { Section } from "./section.tsx";
import { Table } from "./table.tsx";
import { Time } from "./time.tsx";
import { Share } from "./windows.tsx";

const parts = [
  ["teams", "No team yet."],
  ["keys", "No key yet."],
  ["people", "Nobody yet."],
] as const;

/** The limits of an organization, and of all in it. */
export function OrganizationLimits({ organization, changed }: { organization: string; changed: () => void }) {
  const asked = useAnswer("findOrganizationLimits", may("findOrganizationLimits") ? { organization } : null);
  const all = () => [asked.reload(), changed()];
  if (!may("findOrganizationLimits")) return null;
  return (
    <Section title="Limits">
      <Show of={asked}>{(limits) => <LimitsTable caption="Of the organization" rows={[limits]} changed={all} />}</Show>
      {parts.map(([of, none]) => (
        <List key={of} verb="findOrganizationLimits" input={{ organization, of }} cursor={`limits-${of}`} none={none}>
          {(rows, reload) => <LimitsTable caption={`Of ${of}`} rows={rows} changed={() => [reload(), all()]} />}
        </List>
      ))}
    </Section>
  );
}

/** The limits of a person in an organization. */
export function PersonLimits({ organization, person }: { organization: string; person: string }) {
  const asked = useAnswer("findPersonLimits", { organization, person });
  return (
    <Show of={asked}>
      {(limits) => <LimitsTable caption={`In ${organization}`} rows={[limits]} changed={asked.reload} />}
    </Show>
  );
}

function LimitsTable({ caption, rows, changed }: { caption: string; rows: Limits[]; changed: () => void }) {
  return (
    <Table<Limits>
      caption={caption}
      rows={rows}
      keyOf={({ subject_id }) => subject_id}
      columns={[
        { head: caption, cell: ({ name, subject_id }) => name ?? <code>{subject_id}</code> },
        { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
        { head: "In force", cell: (limits) => <InForce of={limits} /> },
        { head: "For models", cell: ({ models }) => <Models of={models} /> },
        { head: "Keys get", cell: ({ keys }) => <ValueWords of={keys} /> },
        { head: "People get", cell: ({ members }) => <ValueWords of={members} /> },
        may("updateKeyLimits") && {
          head: "Acts",
          areActs: true,
          cell: (limits) => <LimitActs of={limits} changed={changed} />,
        },
      ]}
    />
  );
}

const origins = {
  own: "its own",
  team: "of its team",
  organization: "of the organization",
  plan: "of the plan",
  raise: "raised",
} as const;

function InForce({ of: { in_force, raises } }: { of: Limits }) {
  const limited = limitNames.filter((name) => in_force[name].limit !== null);
  const raise = raises.find(({ models }) => models === null);
  if (limited.length === 0) return <span class="fine">nothing</span>;
  return (
    <>
      {limited.map((name) => (
        <div key={name}>
          {wordsOf(name)} {amountWords(in_force[name].limit)}{" "}
          <span class="fine">{origins[in_force[name].from ?? "own"]}</span>
        </div>
      ))}
      {raise && (
        <span class="fine">
          raised until <Time at={raise.until} />
        </span>
      )}
    </>
  );
}

function ValueWords({ of }: { of: Value | null }) {
  const said = limitNames.filter((name) => of?.[name] != null);
  if (!of || said.length === 0) return <>–</>;
  return <>{said.map((name) => `${wordsOf(name)} ${amountWords(of[name])}`).join(", ")}</>;
}

function Models({ of }: { of: Limits["models"] }) {
  const patterns = Object.entries(of);
  if (patterns.length === 0) return <>–</>;
  return (
    <>
      {patterns.map(([pattern, value]) => (
        <div key={pattern}>
          <code>{pattern}</code> <ValueWords of={value} />
        </div>
      ))}
    </>
  );
}

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
const until: Field = {
  name: "until",
  label: "Until",
  kind: "day",
  isRequired: true,
  hint: "When this day begins, UTC",
};
const inherits = "An empty field says nothing, so that what is inherited counts; none: not limited here.";

function LimitActs({ of: limits, changed }: { of: Limits; changed: () => void }) {
  const { subject, subject_id, organization, version, raises } = limits;
  const verb = verbs[subject];
  const whose = subject === "organization" ? `org ${organization}` : `${subject} ${subject_id} --org ${organization}`;
  const common = { verb, given: { ...subjectOf(limits), version }, done: "The limits were changed.", onDone: changed };
  const set = (value: unknown, more = "") =>
    `sluice limit set ${whose} ${typedLimits(value as Record<string, unknown>)}${more}`;
  const hasOthers = subject === "organization" || subject === "team";
  return (
    <span class="acts">
      <Act
        {...common}
        label="Limit"
        fields={valueFields("own", limits.own)}
        says={inherits}
        typed={({ own }) => set(own)}
      />
      {hasOthers && (
        <>
          <Act
            {...common}
            label="Keys get"
            fields={valueFields("keys", limits.keys)}
            says={`What keys get that have nothing of their own. ${inherits}`}
            typed={({ keys }) => set(keys, " --keys")}
          />
          <Act
            {...common}
            label="People get"
            fields={valueFields("members", limits.members)}
            says={`What people get who have nothing of their own. ${inherits}`}
            typed={({ members }) => set(members, " --members")}
          />
        </>
      )}
      <Act
        {...common}
        label="For models"
        fields={[pattern, ...valueFields("value", null)]}
        says="Beside its other limits, for these models alone. With nothing filled in, the pattern is taken away."
        sends={({ models, value = null, ...rest }) => ({ ...rest, models: { [String(models ?? "")]: value } })}
        typed={({ models }) => {
          const [[name, value] = ["", null]] = Object.entries((models ?? {}) as Record<string, unknown>);
          return set(value, ` --models '${name}'`);
        }}
      />
      <Act
        {...common}
        label="Raise"
        fields={[...valueFields("limits", null), until]}
        says="Until then these count, each above the one below it, and then the limits of now again."
        sends={({ limits: raised = {}, until: end, ...rest }) => ({ ...rest, raise: { limits: raised, until: end } })}
        typed={({ raise }) => {
          const { limits: raised, until: end } = (raise ?? {}) as Record<string, never>;
          return `sluice limit raise ${whose} ${typedLimits(raised)} --until ${end ?? "DAY"}`;
        }}
        done="The limits are raised."
      />
      {raises.length > 0 && (
        <Act
          {...common}
          label="End raise"
          given={{ ...common.given, raise: null }}
          says="The limits below count again, for running requests too."
          typed={() => `sluice limit raise ${whose} --end`}
          done="The raise has ended."
        />
      )}
    </span>
  );
}
