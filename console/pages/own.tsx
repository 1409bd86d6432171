/** The first page of somebody who is in an organization: their own usage, limits, keys and requests. */
import { membership, session } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { SubjectSpend } from "../later.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { OwnKeys, SignIns } from "../parts/keys.tsx";
import { AskForLimit } from "../parts/limit-request-acts.tsx";
import { LimitRequests } from "../parts/limit-requests.tsx";
import { LimitsOf } from "../parts/limits.tsx";
import { RequestList } from "../parts/request-list.tsx";
import { Page, Section } from "../parts/section.tsx";

const requests_shown = 5;

export function OwnPage() {
  const own = membership.value!;
  const { id, name } = session.value!;
  const person = id!;
  const { organization, team } = own;
  const limits = useAnswer("findPersonLimits", { organization, person });
  return (
    <Page
      title={name}
      aside={
        <span>
          {organization}
          {team && `, team ${team}`}
        </span>
      }
    >
      <LimitsOf
        title="Your usage and limits"
        of={limits}
        none="Nothing limits you but what limits your keys, your team and your organization."
      />
      <Section title="Your requests for more" aside={<AskForLimit />}>
        <LimitRequests
          input={{ organization, person }}
          none="You have not asked for more. Whoever meets a limit can."
        />
      </Section>
      <SubjectSpend of={{ person }} />
      <OwnKeys organization={organization} />
      <SignIns organization={organization} person={person} />
      <Section title="Your last requests" aside={<a href={`/requests?person=${person}`}>All</a>}>
        <RequestList
          input={{ person }}
          without={["organization", "person"]}
          limit={requests_shown}
          none="No request yet. The page Connect has a block to copy for each client."
        />
      </Section>
      <CommandLine verb="pageKeys" input={{ organization, person }} />
    </Page>
  );
}
