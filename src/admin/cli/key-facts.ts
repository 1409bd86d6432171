/** A key in words: its facts, its permissions, and its life. */

import type { Secret } from "../../core/store/directory.ts";
import { instant } from "../../core/time/written.ts";
import type { BudgetedKey } from "../management/budgets.ts";
import type { Column } from "../management/command.ts";
import type { Key, NewKey } from "../management/key.ts";
import { limitsInWords } from "../management/limits.ts";
import { raiseFacts } from "../management/raise.ts";
import { standingFacts } from "../management/standing.ts";
import type { Services } from "./services.ts";
import { facts, table } from "./table.ts";
import { painted } from "./terminal.ts";

/** The facts that `key update` can change, except team and limits. */
export function keyFacts(key: Key): [string, string | null][] {
  return [
    ["name", key.name],
    ["owner", key.owner],
    ["person", key.personId],
    ["labels", labelsInWords(key.labels)],
    ["scopes", key.scopes.join(", ")],
    ["models", key.allowedModels?.join(", ") ?? "every model"],
    ["allowed from", key.allowedAddresses?.join(", ") ?? "every address"],
    ["expires", instant(key.expiresAt) ?? "never"],
  ];
}

export function budgetFacts({ team, limits }: BudgetedKey): [string, string | null][] {
  return [
    ["team", team && `${team.name} (${team.id})`],
    ["limits", limitsInWords(limits) ?? "none of its own"],
  ];
}

/** The state of a secret by this machine's clock, for display; the store's clock decides about requests. */
function stateOf({ revokedAt, expiresAt }: Pick<Secret, "revokedAt" | "expiresAt">, now_ms: number): string {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt.getTime() <= now_ms ? "expired" : "active";
}

export function describeKey({ terminal, now_ms }: Services, key: BudgetedKey): string {
  const head = facts(terminal, [
    ["id", key.id],
    ["organization", key.organization],
    ["state", key.state],
    ...keyFacts(key),
    ...budgetFacts(key),
    ...raiseFacts(key.raise),
    ...standingFacts(key.standing),
    ["created", [instant(key.createdAt), key.createdBy && `by ${key.createdBy}`].filter(Boolean).join(" ")],
    ["revoked", instant(key.revokedAt)],
    ["ends", instant(key.endsAt)],
    [
      "last used",
      [instant(key.lastUsedAt) ?? "never", key.lastUsedFrom && `from ${key.lastUsedFrom}`].filter(Boolean).join(" "),
    ],
    ["version", String(key.version)],
  ]);
  const secrets: Column<Secret>[] = [
    { head: "SECRET", cell: (secret) => `${secret.prefix}…${secret.suffix}` },
    { head: "STATE", cell: (secret) => stateOf(key.revokedAt ? key : secret, now_ms()) },
    { head: "CREATED", cell: (secret) => instant(secret.createdAt) ?? "" },
    { head: "ENDS", cell: (secret) => instant(secret.revokedAt ?? key.revokedAt ?? secret.expiresAt) ?? "" },
  ];
  return `${head}\n${table(terminal, secrets, key.secrets)}`;
}

/** The answer with a secret. */
export function secretWords({ terminal }: Services, made: NewKey, first: string): string {
  return (
    `${first}\n\n  ${painted(terminal, "bold", made.key ?? "")}\n\n` +
    `Store it now: it cannot be shown again. If you lose it or it leaks, run: sluice key rotate ${made.id}\n`
  );
}

export function describeOldSecrets(key: NewKey, now_ms: number): string {
  const old = key.secrets.slice(1).filter((secret) => stateOf(secret, now_ms) === "active");
  if (old.length === 0) return "The old secret no longer works.\n";
  if (old.every((secret) => secret.expiresAt)) {
    const last_ms = Math.max(...old.map((secret) => secret.expiresAt?.getTime() ?? 0));
    return `The old secret works until ${instant(new Date(last_ms))}.\n`;
  }
  return `The old secret works until you revoke it. To revoke it, run: sluice key revoke ${key.id} --old\n`;
}

/** Null: there are none. */
export function labelsInWords(labels: Readonly<Record<string, string>>): string | null {
  const all = Object.entries(labels).map(([label, text]) => `${label}=${text}`);
  return all.join(", ") || null;
}
