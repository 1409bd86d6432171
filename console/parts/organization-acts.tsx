/** The changes that an administrator can make to an organization. */
import { go } from "../core/address.ts";
import type { Answer } from "../core/client.ts";
import { limitWords, moneyTyped } from "../core/form.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { Act } from "./act.tsx";
import { Suspension } from "./suspension.tsx";
import { windowKinds } from "./windows.tsx";

type Organization = Answer<"findOrganization">;
interface Of {
  of: Organization;
  changed: () => void;
}

const givenOf = ({ slug, version }: Organization) => ({ organization: slug, version });

/** The actions that suspend, resume or close an organization. `running`: the number of running requests of its keys. */
export function StateActs({ of: organization, running, changed }: Of & { running: number }) {
  const { slug, status } = organization;
  const given = givenOf(organization);
  const stopped = running === 0 ? "" : ` ${running} running requests end.`;
  return (
    <>
      <Suspension
        kind="Organization"
        state={status}
        given={given}
        name={slug}
        ends={`Stops all keys of the organization, within a second on every node, until it is resumed.${stopped}`}
        resumes="Its keys work again."
        changed={changed}
      />
      {status !== "closed" && (
        <Act
          label="Close"
          verb="closeOrganization"
          given={given}
          ends={{
            name: slug,
            what: `Closes the organization for good: its keys are revoked, and its stored responses deleted.${stopped} Its records and reports stay for 13 months.`,
          }}
          done={`${slug} is closed.`}
          onDone={changed}
        />
      )}
    </>
  );
}

export function SettingActs({ of: organization, changed }: Of) {
  if (organization.status === "closed") return null;
  const acts = [PlanAct, ExtraUsageAct, KeyExpiryAct, StoringAct, CalendarAct, CycleAct, RenameAct];
  return (
    <span class="acts">
      {acts.map((One) => (
        <One key={One.name} of={organization} changed={changed} />
      ))}
    </span>
  );
}

function PlanAct({ of, changed }: Of) {
  const plans = useAnswer("listPlans", may("setPlan") ? {} : null);
  const names = plans.answer?.data.map(({ name }) => name) ?? [];
  const choices = [["", "none: inference is refused"] as const, ...names];
  return (
    <Act
      label="Change plan"
      verb="setPlan"
      given={givenOf(of)}
      fields={[{ name: "plan", kind: "choice", isSent: true, value: of.plan, choices }]}
      says="The new limits apply from the next request on. What was used still counts."
      done="The plan was changed."
      onDone={changed}
    />
  );
}

function ExtraUsageAct({ of, changed }: Of) {
  return (
    <Act
      label="Extra usage"
      verb="setExtraUsage"
      given={givenOf(of)}
      fields={[
        {
          name: "cap",
          label: "Money in a billing month",
          kind: "money",
          none: "off",
          isSent: true,
          value: of.extra_usage.cap && moneyTyped(of.extra_usage.cap),
        },
      ]}
      says="What the organization may use beyond its plan. An empty field stops it."
      done="Extra usage was changed."
      onDone={changed}
    />
  );
}

function KeyExpiryAct({ of, changed }: Of) {
  return (
    <Act
      label="Key expiry"
      verb="updatePolicies"
      given={givenOf(of)}
      fields={[
        {
          name: "key_lifetime_max_days",
          label: "Key expiry: days from when a key is made or rotated",
          none: "never",
          value: of.key_lifetime_max_days,
        },
        {
          name: "key_unused_max_days",
          label: "Disable unused keys: days from the last use",
          none: "never",
          value: of.key_unused_max_days,
        },
      ]}
      says="It holds at once, for the keys that there are, too. Keys that a limit ended work again when it is lifted."
      done="The policies were changed."
      onDone={changed}
    />
  );
}

function StoringAct({ of, changed }: Of) {
  const given = givenOf(of);
  if (!of.keeps_content) {
    return (
      <Act
        label="Store responses"
        verb="updatePolicies"
        given={{ ...given, keeps_content: true }}
        says="Responses are stored when a client asks for it."
        done="Responses are stored."
        onDone={changed}
      />
    );
  }
  return (
    <Act
      label="Stop storing responses"
      verb="updatePolicies"
      given={{ ...given, keeps_content: false }}
      ends={{ name: of.slug, what: "Deletes the stored responses of the organization, and stores no more." }}
      done="No responses are stored."
      onDone={changed}
    />
  );
}

function CalendarAct({ of, changed }: Of) {
  const written = of.next_calendar ? of.next_calendar.calendar : of.calendar;
  return (
    <Act
      label="Calendar"
      verb="updateCalendar"
      given={givenOf(of)}
      fields={[
        { name: "zone", label: "Time zone, such as Europe/Berlin", none: "UTC", value: written?.zone ?? null },
        { name: "week_starts", label: "A week begins on", value: written?.week_starts ?? "monday" },
        { name: "month_starts", label: "A month begins on day", value: written?.month_starts ?? 1 },
      ]}
      says="Weeks and months begin at the start of a day there, once the current ones have ended. One shorter window of each follows, with its limits in proportion. At most one change a month. An empty time zone counts them from the start of the billing cycle again."
      done="The calendar was changed."
      onDone={changed}
    />
  );
}

function CycleAct({ of, changed }: Of) {
  if (of.calendar || of.next_calendar?.calendar) return null;
  return (
    <Act
      label="Billing cycle"
      verb="setAnchor"
      given={givenOf(of)}
      fields={[{ name: "anchor", label: "Billing cycle starts" }]}
      says="A date in UTC, from which weeks and months are counted. It holds once the current month has ended."
      done="The billing cycle was changed."
      onDone={changed}
    />
  );
}

function RenameAct({ of, changed }: Of) {
  return (
    <Act
      label="Rename"
      verb="renameOrganization"
      given={givenOf(of)}
      fields={[
        { name: "slug", value: of.slug },
        { name: "name", value: of.name },
      ]}
      says="Its ID, keys and records stay. The old slug names it no more, and is never another organization's."
      done="The organization was renamed."
      onDone={({ slug }: Organization) => (slug === of.slug ? changed() : go(`/organizations/${slug}`))}
    />
  );
}

type WindowKind = (typeof windowKinds)[number];
const isWindow = (name: string): name is WindowKind => windowKinds.some((kind) => kind === name);

/** The action that corrects the recorded usage of an organization. */
export function AdjustAct({ of: { slug, status }, changed }: Of) {
  if (status === "closed") return null;
  return (
    <Act
      label="Correct usage"
      verb="adjustUsage"
      given={{ organization: slug }}
      fields={[
        {
          name: "window",
          label: "Of",
          value: "session",
          choices: choicesOf("adjustUsage", "window").map((name) =>
            isWindow(name)
              ? [name, limitWords(name)]
              : name === "all"
                ? [name, "5-hour session, week and month"]
                : name,
          ),
        },
        { name: "amount", hint: "With a minus to subtract, down to 0" },
        { name: "reason", hint: "For the audit log" },
      ]}
      says="A correction of the month or of extra usage is part of reports and their costs. One of the 5-hour session or the week changes only what its limit leaves. It adds to those before."
      done="The usage was corrected."
      onDone={changed}
    />
  );
}
