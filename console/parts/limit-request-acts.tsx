/** Requests for a higher limit: asking for one, and deciding on it. */
import type { Answer, Input } from "../core/client.ts";
import { limitLabels, limitNames, moneyTyped } from "../core/form.ts";
import { isMember, may, session } from "../core/session.ts";
import { days } from "../core/verb-table.ts" with { type: "macro" };
import { Act } from "./act.tsx";

export type LimitRequest = Answer<"findLimitRequest">;

const message = { name: "message", label: "Why", hint: "Your administrators read it" };
const amount = { name: "amount", label: "How much it should be", hint: "Empty: they say how much" };
const says = `Your administrators see it here for ${days("limitRequest")} days, and decide.`;

/** Asks for a higher value of the limit that refused a request. */
export function AskForMore({ request, done }: { request: string; done?: (answer: LimitRequest) => void }) {
  return (
    <Act
      label="Ask for more"
      verb="requestLimit"
      isPrimary
      given={{ request }}
      fields={[amount, message]}
      says={says}
      done="Your administrators were asked."
      onDone={(answer: LimitRequest) => done?.(answer)}
    />
  );
}

const whose = [
  ["person", "Mine"],
  ["team", "My team's"],
  ["organization", "The organization's"],
] as const;

/** Asks for a higher value of a limit that the reader chooses. */
export function AskForLimit() {
  if (!may("requestLimit") || session.value?.kind !== "person") return null;
  return (
    <Act
      label="Ask for more"
      verb="requestLimit"
      fields={[
        { name: "limit", isRequired: true, choices: limitNames.map((name) => [name, limitLabels[name].label]) },
        { name: "of", label: "Whose", choices: whose, value: "person" },
        { name: "models", hint: "Empty: the limit for all" },
        amount,
        message,
      ]}
      says={says}
      done="Your administrators were asked."
    />
  );
}

const week_ms = 7 * 86_400_000;
const inAWeek = () => new Date(Date.now() + week_ms).toISOString().slice(0, 10);

interface Props {
  of: LimitRequest;
  changed?: (() => void) | undefined;
}

/** The actions of those who decide on a request for a higher limit, and of the person who asked. */
export function LimitRequestActs({ of: { id, state, person_id, asked, limit }, changed }: Props) {
  if (state !== "open") return null;
  const isOwn = session.value?.id === person_id;
  const typed = typeof asked === "object" && asked !== null ? moneyTyped(asked) : asked;
  const given = { id } as Input<"approveLimitRequest">;
  return (
    <span class="acts">
      {!isOwn && !isMember.value && (
        <>
          <Act
            label="Approve"
            verb="approveLimitRequest"
            isPrimary
            given={given}
            fields={[
              { name: "amount", label: limitLabels[limit].label, isRequired: true, value: typed },
              { name: "until", label: "Ends on", isSent: true, value: inAWeek() },
            ]}
            says="Applies now, and ends by itself."
            done="The limit is increased."
            onDone={changed}
          />
          <Act
            label="Decline"
            verb="declineLimitRequest"
            given={given}
            fields={[{ name: "reason", label: "Why", hint: "Who asked reads it" }]}
            done="The request is declined."
            onDone={changed}
          />
        </>
      )}
      {isOwn && (
        <Act
          label="Withdraw"
          verb="withdrawLimitRequest"
          given={given}
          done="The request is withdrawn."
          onDone={changed}
        />
      )}
    </span>
  );
}
