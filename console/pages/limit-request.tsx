/**
 * One request for a higher limit: what is asked, and the decision. Opening the page decides nothing, because
 * each decision is a button that sends a POST.
 */
import { amountWords } from "../core/limit-fields.ts";
import { isMember } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type LimitRequest, LimitRequestActs } from "../parts/limit-request-acts.tsx";
import { limitOf, RequestState } from "../parts/limit-requests.tsx";
import { OrganizationLink, RequestLink, ThingLink } from "../parts/links.tsx";
import { Facts, Page, Section } from "../parts/section.tsx";
import { Time } from "../parts/time.tsx";

export function LimitRequestPage({ id }: PageProps) {
  const asked = useAnswer("findLimitRequest", { id });
  const found = asked.answer;
  return (
    <Page
      title="Request for more"
      up={found && upOf(found)}
      aside={
        found && (
          <>
            <RequestState of={found.state} />
            <LimitRequestActs of={found} changed={asked.reload} />
          </>
        )
      }
    >
      <Show of={asked}>
        {(request) => (
          <>
            <Section title={limitOf(request)}>
              <Facts of={factsOf(request)} />
            </Section>
            <CommandLine verb="pageLimitRequests" input={{ organization: request.organization }} />
          </>
        )}
      </Show>
    </Page>
  );
}

const upOf = ({ organization }: LimitRequest) =>
  isMember.value
    ? { href: "/you", name: "Overview" }
    : { href: `/organizations/${organization}/asked`, name: `Requests of ${organization}` };

function factsOf(request: LimitRequest) {
  const { person_id, person, subject, subject_id, name, request_id, asked, granted, until } = request;
  return [
    ["who asks", <ThingLink key="p" kind="person" id={person_id} name={person} />],
    ["why", request.message],
    ["had then", amountWords(request.value)],
    ["asks for", asked === null ? "more" : amountWords(asked)],
    ["limit of", subject === "organization" ? null : <ThingLink key="s" kind={subject} id={subject_id} name={name} />],
    ["organization", <OrganizationLink key="o" slug={request.organization} />],
    ["refused request", request_id && <RequestLink key="r" id={request_id} />],
    ["asked", <Time key="c" at={request.created_at} />],
    ["expires", request.state === "open" ? <Time key="e" at={request.expires_at} /> : null],
    ["granted", granted === null ? null : amountWords(granted)],
    ["until", until && <Time key="u" at={until} />],
    ["reason", request.reason],
    ["decided by", request.decided_by],
    ["decided", request.decided_at && <Time key="d" at={request.decided_at} />],
  ] as const;
}
