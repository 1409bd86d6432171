/** A key in words, as commands print it: its facts, its secrets and its labels. */
import type { Secret } from "../../core/operations/fields.ts";
import { instant } from "../../core/time/written.ts";
import { type Column, type Facts, type Said, tablePiece } from "./command.ts";
import { madeWords, secretSaid, secretState, usedWords } from "./credential.ts";
import type { Key, NewKey } from "./key.ts";
import { standingFacts } from "./standing.ts";

/** The facts of a key that an update can change, as commands print them. */
export function keyFacts(key: Key): Facts {
  return [
    ["name", key.name],
    ["owner", key.owner],
    ["person", key.personId],
    ["labels", labelsInWords(key.labels)],
    ["scopes", key.scopes.join(", ")],
    ["models", key.models?.join(", ") ?? "every model"],
    ["allowed from", key.allowFrom?.join(", ") ?? "every address"],
    ["expires", instant(key.expiresAt) ?? "never"],
    ["team", key.team && `${key.team.name} (${key.team.id})`],
  ];
}

export function keySaid(key: Key, _: unknown, now_ms: number): Said {
  const facts: Facts = [
    ["id", key.id],
    ["kind", key.kind === "key" ? null : key.kind],
    ["organization", key.organization],
    ["state", key.state],
    ...keyFacts(key),
    ...standingFacts(key.standing),
    ["created", madeWords(key)],
    ["revoked", instant(key.revokedAt)],
    ["ends", instant(key.endsAt)],
    ["last used", usedWords(key)],
    ["version", String(key.version)],
  ];
  const secrets: Column<Secret>[] = [
    { head: "SECRET", cell: (secret) => `${secret.prefix}…${secret.suffix}` },
    { head: "STATE", cell: (secret) => secretState(key.revokedAt ? key : secret, now_ms) },
    { head: "CREATED", cell: (secret) => instant(secret.createdAt) ?? "" },
    { head: "ENDS", cell: (secret) => instant(secret.revokedAt ?? key.revokedAt ?? secret.expiresAt) ?? "" },
  ];
  return { pieces: [{ facts }, tablePiece(secrets, key.secrets)] };
}

/** The output of a command that has just created or rotated a key, with the new secret. */
export function newKeySaid(made: NewKey, first: string, last = ""): Said {
  const next = `Store it now: it cannot be shown again. If you lose it or it leaks, run: sluice key rotate ${made.id}\n`;
  return secretSaid(first, made.key, next + last);
}

/** The labels as `name=text`, with commas between them; null if there are none. */
export function labelsInWords(labels: Readonly<Record<string, string>>): string | null {
  const all = Object.entries(labels).map(([label, text]) => `${label}=${text}`);
  return all.join(", ") || null;
}
