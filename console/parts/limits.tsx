/** Limits of organizations, teams, people and keys: what is used, what is in force, and where each limit comes from. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { query, withQuery } from "../core/address.ts";
import { limitNames, limitWords } from "../core/form.ts";
import { amountWords, type Limits, type Value } from "../core/limit-fields.ts";
import { may } from "../core/session.ts";
import { type Asked, useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { LimitActs, OtherLimitActs } from "./limit-acts.tsx";
import { ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { Empty, Section } from "./section.tsx";
import { Table } from "./table.tsx";
import { Choices } from "./tabs.tsx";
import { Time } from "./time.tsx";
import { ModelWindows, Share, Windows } from "./windows.tsx";

interface Props {
  title: string;
  of: Asked<Limits>;
  /** The newest known version of the subject. Limits that were loaded with an older version are loaded again. */
  version?: number;
  /** Called after a change of the limits, which gives the subject a new version. */
  changed?: () => void;
  /** The text to show if no limit applies. */
  none: ComponentChildren;
  /** Whether the usage of the subject's windows is shown elsewhere. */
  isWithoutUse?: boolean;
}

/** The limits of one subject, with its acts. */
export function LimitsOf({ title, of: asked, version, changed, none, isWithoutUse }: Props) {
  const all = () => [asked.reload(), changed?.()];
  useEffect(() => {
    if (version !== undefined && asked.answer && asked.answer.version < version) asked.reload();
  }, [version, asked.answer?.version]);
  return (
    <Section
      title={title}
      aside={
        asked.answer && (
          <span class="acts">
            <LimitActs of={asked.answer} changed={all} />
            <OtherLimitActs of={asked.answer} changed={all} />
          </span>
        )
      }
    >
      <Show of={asked}>
        {(limits) => {
          const lines = linesOf(limits);
          return (
            <>
              {!isWithoutUse && limits.standing && <Windows of={limits.standing} />}
              <ModelWindows of={limits.model_standings} />
              {lines.length > 0 ? <LinesTable caption={title} of={lines} /> : <Empty>{none}</Empty>}
            </>
          );
        }}
      </Show>
    </Section>
  );
}

interface Line {
  name: string;
  value: ComponentChildren;
  from: ComponentChildren;
}

function LinesTable({ caption, of }: { caption: string; of: readonly Line[] }) {
  return (
    <Table<Line>
      caption={caption}
      rows={of}
      keyOf={({ name }) => name}
      columns={[
        { head: "Limit", cell: ({ name }) => name },
        { head: "In force", cell: ({ value }) => value },
        { head: "Comes from", cell: ({ from }) => from },
      ]}
    />
  );
}

function linesOf({ in_force, models, keys, members, raises, unmatched_models: unmatched }: Limits): Line[] {
  const inForce = limitNames.filter((name) => in_force[name].limit !== null);
  const raise = raises.find((one) => one.models === null);
  const values = [...Object.entries(models), ["each key", keys] as const, ["each person", members] as const];
  return [
    ...inForce.map((name) => {
      const { limit, from } = in_force[name];
      const ending = from === "raise" && raise && <Time at={raise.until} />;
      return {
        name: limitWords(name),
        value: amountWords(limit),
        from: ending ? <span>increased until {ending}</span> : origins[from ?? "own"],
      };
    }),
    ...values
      .filter(([, value]) => saysAny(value))
      .map(([name, value]) => ({
        name: `for ${name}`,
        value: <ValueWords of={value} />,
        from: name in unmatched ? <Unmatched closest={unmatched[name]!} /> : origins.own,
      })),
    ...raises
      .filter((one) => one.models !== null)
      .map(({ models: name, limits, until }) => ({
        name: `for ${name}, increased`,
        value: <ValueWords of={limits} />,
        from: (
          <span>
            until <Time at={until} />
          </span>
        ),
      })),
  ];
}

function Unmatched({ closest }: { closest: string | null }) {
  return (
    <>
      {origins.own} <span class="badge warn">matches no model today</span>
      {closest !== null && <span class="fine"> did you mean {closest}?</span>}
    </>
  );
}

const origins = {
  own: "set here",
  team: "the team",
  organization: "the organization",
  plan: "the plan",
  raise: "increased",
} as const;

interface OfOrganization extends Required<Pick<Props, "version" | "changed">> {
  organization: string;
}

/** The limits of an organization, and of its teams, people and keys. */
export function OrganizationLimits({ organization, version, changed }: OfOrganization) {
  const asked = useAnswer("findOrganizationLimits", { organization });
  return (
    <>
      <LimitsOf
        title="Limits of the organization"
        of={asked}
        version={version}
        changed={changed}
        none="Nothing limits the organization."
        isWithoutUse
      />
      <LimitsIn organization={organization} />
    </>
  );
}

const kinds = {
  teams: { name: "Teams", head: "Team", kind: "team", none: "No team yet. The tab Teams creates one." },
  people: {
    name: "People",
    head: "Person",
    kind: "person",
    none: "No person has been here yet. People come in by an issuer.",
  },
  keys: { name: "Keys", head: "Key", kind: "key", none: "No key yet. The tab Keys creates one." },
} as const;

/** The limits of the organization's teams, people or keys; the address says which. */
function LimitsIn({ organization }: { organization: string }) {
  const asked = query.value.get("of") ?? "teams";
  const of = asked in kinds ? (asked as keyof typeof kinds) : "teams";
  const { name, head, kind, none } = kinds[of];
  const choices = Object.entries(kinds).map(([path, one]) => ({
    name: one.name,
    href: withQuery({ of: path }),
    path,
  }));
  return (
    <Section
      title={`Limits of ${name.toLowerCase()}`}
      aside={<Choices label="Whose limits" of={choices} isChosen={({ path }) => path === of} isSmall />}
    >
      <List key={of} verb="findOrganizationLimits" input={{ organization, of }} none={none}>
        {(rows: Limits[], reload) => (
          <Table<Limits>
            caption={`Limits of ${name.toLowerCase()}`}
            rows={rows}
            keyOf={({ subject_id }) => subject_id}
            columns={[
              {
                head,
                cell: ({ name: own, subject_id }) => <ThingLink kind={kind} id={subject_id} name={own} />,
              },
              { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
              { head: "In force", cell: (limits) => <InForce of={limits} /> },
              { head: "For models", isMinor: true, cell: ({ models }) => <Models of={models} /> },
              may("updateKeyLimits") && {
                head: "Actions",
                areActs: true,
                cell: (limits) => <LimitActs of={limits} changed={reload} />,
              },
            ]}
          />
        )}
      </List>
    </Section>
  );
}

function InForce({ of: { in_force, raises } }: { of: Limits }) {
  const limited = limitNames.filter((name) => in_force[name].limit !== null);
  const raise = raises.find(({ models }) => models === null);
  if (limited.length === 0) return <span class="fine">no limit</span>;
  return (
    <>
      {limited.map((name) => (
        <div key={name}>
          {limitWords(name)} {amountWords(in_force[name].limit)}{" "}
          <span class="fine">{origins[in_force[name].from ?? "own"]}</span>
        </div>
      ))}
      {raise && (
        <span class="fine">
          increased until <Time at={raise.until} />
        </span>
      )}
    </>
  );
}

const saysAny = (value: Value | null) => limitNames.some((name) => value?.[name] != null);

function ValueWords({ of }: { of: Value | null }) {
  const said = limitNames.filter((name) => of?.[name] != null);
  return <>{said.map((name) => `${limitWords(name)} ${amountWords(of![name])}`).join(", ")}</>;
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
