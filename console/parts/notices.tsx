/** The webhook of an organization, which hears of limits and of keys that end. */

import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Act } from "./act.tsx";
import { Secret } from "./key-acts.tsx";
import { Empty, Facts, Section } from "./section.tsx";
import { Time } from "./time.tsx";

export function Notices({ organization }: { organization: string }) {
  const asked = useAnswer("findNotices", { organization });
  const now = asked.failure ? null : asked.answer;
  return (
    <Section
      title="Notices"
      aside={
        <span class="acts">
          <Act
            label={now ? "Change" : "Set"}
            verb="setNotices"
            given={{ organization }}
            fields={[{ name: "url", label: "URL of the webhook", isRequired: true, value: now?.url ?? "" }]}
            done="The webhook was set."
            onDone={asked.reload}
            result={({ secret }: { secret: string | null }) =>
              secret === null ? <p class="told">Its secret stays.</p> : <Secret of={secret} />
            }
          />
          {now && (
            <Act
              label="Remove"
              verb="removeNotices"
              given={{ organization }}
              ends={{ name: organization, what: removal(now.waiting) }}
              done="The webhook was removed."
              onDone={asked.reload}
            />
          )}
        </span>
      }
    >
      {now ? (
        <Facts
          of={[
            ["webhook", now.url],
            ["alerts at", now.shares.map((share) => `${share} %`).join(", ")],
            ["before a key expires", `${now.key_expiry_days} days`],
            ["waiting", now.waiting > 0 ? `${now.waiting} not delivered` : ""],
            ["problem", now.problem],
            ["last changed", <Time key="c" at={now.changed_at} />],
          ]}
        />
      ) : asked.isLoading ? (
        <p class="waiting">Loading…</p>
      ) : (
        <Empty>
          No alerts configured.
          {may("setNotices") &&
            " Set a webhook, and it gets a notice at 50, 80 and 100 % of a limit, and of keys that expire."}
        </Empty>
      )}
    </Section>
  );
}

/** The loss when the webhook is removed. */
function removal(waiting: number): string {
  const dropped =
    waiting === 0
      ? ""
      : ` ${waiting} that ${waiting === 1 ? "waits" : "wait"} to be sent ${waiting === 1 ? "is" : "are"} dropped.`;
  return `No more alerts of limits that are near and keys that expire.${dropped}`;
}
