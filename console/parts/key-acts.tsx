/** The actions on keys: to create one, to change it, to give it another secret, and to end it. */
import type { ItemOf } from "../core/client.ts";
import type { WrittenField } from "../core/form.ts";
import { valueFields } from "../core/limit-fields.ts";
import { isMember } from "../core/session.ts";
import { Act } from "./act.tsx";
import { Block } from "./copy.tsx";
import { organizationField, useOrganizations, useTeamField } from "./place-fields.ts";

type Key = ItemOf<"pageKeys">;

interface Created {
  /** The organization of the new key. Null: the form asks for it, if there are several. */
  organization: string | null;
  /** The owner of the new key: a person, who already has a team, or a team. */
  given?: { person?: string; team?: string };
}

export function CreateKey({ organization, given = {} }: Created) {
  const places = useOrganizations();
  const known = organization ?? places.only;
  const team = useTeamField(known);
  const expires: WrittenField = { name: "expires_at", label: "Expires" };
  const models: WrittenField = { name: "models" };
  const limits = valueFields("limits", null).filter(({ name }) => /week|month|concurrent/.test(name));
  const fields: WrittenField[] = [
    ...(known === null ? [organizationField(places)] : []),
    { name: "name", hint: "Who or what calls with it" },
    ...(isMember.value
      ? [
          { ...expires, isRequired: true },
          { ...models, hint: "With commas; empty: every model that you may use" },
        ]
      : [
          ...(given.person || given.team ? [] : [team]),
          { ...expires, hint: "Empty: as the organization's policy says" },
          { ...models, hint: "With commas; empty: every model" },
          ...limits,
        ]),
  ];
  return (
    <Act
      label="Create key"
      verb="createKey"
      given={{ ...(known !== null && { organization: known }), ...(isMember.value ? {} : given) }}
      fields={fields}
      isPrimary
      done="The key was created."
      hasSecret
      result={({ key }: { key: string | null }) => <Secret of={key} />}
    />
  );
}

export function Secret({ of }: { of: string | null }) {
  if (of === null) return <p class="told">This was a repeat. Rotate to get another secret.</p>;
  return (
    <div class="told">
      <p>Copy it now: it is shown this once.</p>
      <Block text={of} label="Secret" />
    </div>
  );
}

interface OfKey {
  of: Key;
  changed: () => void;
}

/**
 * The actions needed most, for a key's row in a list; the key's page has the others. A key of a sign-in cannot be
 * rotated, and one of kind `jwt`, whose callers send an issuer's tokens, has no secret to revoke either.
 */
export function KeyEnd({ of: key, changed }: Pick<OfKey, "of"> & Partial<OfKey>) {
  const running = key.standing?.running_requests ?? 0;
  if (key.state === "revoked" || key.kind === "jwt") return null;
  return (
    <SecretActs
      kind="Key"
      of={key}
      canRotate={key.kind === "key"}
      ends={{
        old: "Ends the secrets that rotations replaced. The newest goes on.",
        all: `Ends this key for good, within a second on every node${running > 0 ? `, and ${running} running requests with it` : ""}.`,
      }}
      changed={changed}
    />
  );
}

export function ChangeKey({ of: key, changed }: OfKey) {
  const team = useTeamField(key.organization, key.team?.name ?? "");
  if (key.state === "revoked" || key.kind !== "key") return null;
  const given = { id: key.id, version: key.version };
  return (
    <>
      {key.person_id === null && (
        <Act
          label="Change team"
          verb="updateKey"
          given={given}
          fields={[team]}
          says="The key then shares the team's limits. It holds for the next request."
          done="The key is in its team."
          onDone={changed}
        />
      )}
      <Act
        label="Change"
        verb="updateKey"
        given={given}
        fields={[
          { name: "name", value: key.name },
          { name: "owner", value: key.owner, hint: "A person or a team, in any words" },
          { name: "models", value: key.models, hint: "Empty: every model" },
          { name: "scopes", value: key.scopes },
          {
            name: "allow_from",
            label: "Addresses and networks",
            value: key.allow_from,
            hint: "Such as 10.0.0.0/8; empty: all",
          },
          { name: "expires_at", label: "Expires", value: key.expires_at?.slice(0, 10) ?? "" },
        ]}
        says="Every node knows within a second. What runs goes on."
        done="The key was changed."
        onDone={changed}
      />
    </>
  );
}

interface SecretActsProps {
  kind: "Key" | "Operator";
  of: Pick<Key, "id" | "name" | "secrets">;
  canRotate?: boolean;
  /** The effect of ending the old secrets, and of ending all, in a sentence each. */
  ends: { old: string; all: string };
  changed?: (() => void) | undefined;
}

/** Rotates or revokes secrets: of a key, or of an operator, whose secrets are tokens. */
export function SecretActs({ kind, of: { id, name, secrets }, canRotate = true, ends, changed }: SecretActsProps) {
  const [thing, secret] = kind === "Key" ? ["key", "secret"] : ["operator", "token"];
  return (
    <span class="acts">
      {canRotate && (
        <Act
          label="Rotate"
          verb={`rotate${kind}`}
          given={{ id }}
          fields={[
            {
              name: "grace",
              label: `Old ${secret} works for`,
              value: "24h",
              isSent: true,
              hint: "Such as 1h or 7d; 0s: it ends now",
            },
          ]}
          done={`The ${thing} has a new ${secret}.`}
          onDone={changed}
          hasSecret
          result={(answer: { key: string | null } | { token: string | null }) => (
            <Secret of={"key" in answer ? answer.key : answer.token} />
          )}
        />
      )}
      {canRotate && hasOld(secrets) && (
        <Act
          label={`End old ${secret}s`}
          verb={`revoke${kind}`}
          given={{ id, old: true }}
          ends={{ name, what: ends.old }}
          done={`The old ${secret}s were revoked.`}
          onDone={changed}
        />
      )}
      <Act
        label="Revoke"
        verb={`revoke${kind}`}
        given={{ id }}
        ends={{ name, what: ends.all }}
        done={`The ${thing} was revoked.`}
        onDone={changed}
      />
    </span>
  );
}

type Ending = Record<"revoked_at" | "expires_at", string | null>;

/** The state of a secret, or of an operator. */
export function secretState({ revoked_at, expires_at }: Ending): string {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= Date.now() ? "expired" : "active";
}

/** Whether an older secret than the newest still works. */
const hasOld = (secrets: readonly Ending[]) => secrets.slice(1).some((one) => secretState(one) === "active");
