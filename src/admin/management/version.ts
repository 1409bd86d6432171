/** Turns the store's result of a change into the answer of a verb of management, or into a refusal in words. */
import type { TSchema } from "typebox";
import { encode, type Value } from "../../core/schema/codec.ts";
import type { Stale } from "../store/change.ts";
import type { ManagementContext } from "./context.ts";
import { ManagementError } from "./error.ts";

/** A kind of thing that has versions: the form in which its verbs return it, and the refusals of a change. */
export interface VersionedKind<Stored, Schema extends TSchema, Refusal extends string> {
  schema: Schema;
  /** The name of the thing, as the beginning of a sentence: `Key 'build server'`. */
  title(now: Stored): string;
  listed(now: Stored): Value<Schema> | Promise<Value<Schema>>;
  /** The refusals, by their reason. `gone`: the thing does not exist. */
  refusals: Record<Refusal | "gone", () => never | Promise<never>>;
}

/** The version that the caller has read, and the IDs under which nodes and the audit log have the thing. */
interface VersionedChange {
  read: number | undefined;
  id: string;
  announced?: string | null;
}

/** Returns the changed thing and informs the nodes, or throws the refusal of the change. */
export async function changed<Stored extends object, Schema extends TSchema, Refusal extends string>(
  context: Pick<ManagementContext, "administration" | "announce" | "within">,
  { read, id, announced = id }: VersionedChange,
  { schema, title, listed, refusals }: VersionedKind<Stored, Schema, Refusal>,
  answer: Stored | Stale<Stored> | Refusal | null,
): Promise<Value<Schema>> {
  if (answer === null) return refusals.gone();
  if (typeof answer === "string") return refusals[answer]();
  if (isStale(answer)) {
    const current = await listed(answer.stale);
    const { version } = current as { version: number };
    const last = await lastChange(context, id);
    const message = `${title(answer.stale)} has version ${version} now, not ${read}: it changed since you read it, and you would overwrite that.${last}`;
    const body = { current: encode<TSchema>(schema, current) as Record<string, unknown> };
    throw new ManagementError(message, "version_conflict", { body });
  }
  if (announced !== null) await context.announce(announced);
  return listed(answer);
}

const isStale = <Stored extends object>(answer: Stored | Stale<Stored>): answer is Stale<Stored> => "stale" in answer;

/** A sentence that says when the thing was last changed, and by whom. */
async function lastChange(
  { administration, within }: Pick<ManagementContext, "administration" | "within">,
  subject: string,
): Promise<string> {
  const [last] = await administration.listAudit({ organizationId: within ?? undefined, subject, limit: 1 });
  return last ? ` The last change was ${last.action} by ${last.actor}, at ${last.at.toISOString()}.` : "";
}
