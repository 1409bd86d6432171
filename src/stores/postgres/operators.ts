/** Operators over SQL. They are like keys, with a role instead of an organization (src/stores/postgres/keys.ts). */
import { and, eq, getTableColumns, gt, inArray, type SQL, sql } from "drizzle-orm";
import { operator, operatorSecret } from "../../../db/schema.ts";
import type { OperatorAdministration } from "../../admin/store/operators.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import type { FoundOperator, Operator } from "../../features/identity/store/operators.ts";
import { appendAuditEntry, creating, storeNow } from "./acts.ts";
import { keepingAdministrator } from "./administrators.ts";
import { batched } from "./batched.ts";
import type { Changeable } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { idIn, type OperatorRow, pageIn, unwrapErrors, uuidIfAny } from "./rows.ts";
import { credentialsOf, masked, operatorSecrets } from "./secrets.ts";

/** The least time between two updates of `lastUsedAt`, so that most look-ups write nothing. */
const used_minutes = 1;

export function operators(db: Database): OperatorAdministration {
  const find = batched<Presented, FoundOperator>(nameOf, (presented) => findByTokens(db, presented));
  return {
    operatorOf: (tokenHash, address) => unwrapErrors(find({ tokenHash, address })),

    createOperator: (input) =>
      creating(db, input, async (tx) => {
        const at = await storeNow(tx);
        const { name, role, expiresAt, actor } = input;
        const id = bare(input.id, "op_");
        const owner = uuidIfAny(input.organizationId, "org_");
        const [made] = await tx.drizzle
          .insert(operator)
          .values({ id, name, role, organizationId: owner, createdBy: actor, createdAt: at, expiresAt })
          .onConflictDoNothing({ target: operator.name })
          .returning();
        if (!made) return "name_taken";
        await operatorSecrets.add(tx, id, input.secret, at);
        const rights = { role, organization_id: input.organizationId, expires_at: expiresAt };
        const details = { name, ...rights, secret: masked(input.secret) };
        await appendAuditEntry(tx, at, { actor, action: "operator.create", owner, subject: input.id, details });
        return (await read(tx, eq(operator.id, id)))!;
      }),

    async pageOperators({ after, limit }) {
      const beyond = after === undefined ? undefined : gt(operator.id, uuidOf(after, "op_") ?? uuid_max);
      return pageIn(db.drizzle.select(operatorColumns).from(operator).where(beyond).orderBy(operator.id), limit);
    },

    async findOperator(nameOrId) {
      const uuid = uuidOf(nameOrId, "op_");
      return unwrapErrors(read(db, uuid === null ? eq(operator.name, nameOrId) : eq(operator.id, uuid)));
    },

    rotateOperator: (rotation) => operatorCredentials.rotate(db, changeableOperator, rotation),
    revokeOperator: (revocation) => operatorCredentials.revoke(db, guardedOperator, revocation),
  };
}

/** The columns of a complete operator: the row's own, and the secrets. */
const operatorColumns = {
  ...getTableColumns(operator),
  id: idIn(operator.id, "op_"),
  organizationId: idIn(operator.organizationId, "org_"),
  secrets: operatorSecrets.listed,
};

const changeableOperator: Changeable<OperatorRow, Operator> = {
  lock,
  read: (tx, { id }) => read(tx, eq(operator.id, id)),
  owner: ({ organizationId }) => organizationId,
  // Operators are not cached by nodes, so there is nothing to announce.
  announce: async () => {},
};

/** How an operator is revoked. This is refused if there would be no administrator any more. */
const guardedOperator: Changeable<OperatorRow, Operator, "last_admin"> = {
  ...changeableOperator,
  transaction: keepingAdministrator,
};

const operatorCredentials = credentialsOf("operator", operatorSecrets, async (tx, { id }: OperatorRow, revokedAt) => {
  await tx.drizzle.update(operator).set({ revokedAt }).where(eq(operator.id, id));
});

interface Presented {
  tokenHash: Uint8Array;
  /** The address from which the token came. */
  address: string | null;
}

const nameOf = ({ tokenHash, address }: Presented) => `${tokenHash.toHex()} ${address}`;

/** Which secrets management accepts: only those of the form `slo_`. */
const isForManagement = sql`left(${operatorSecret.prefix}, 4) = 'slo_'`;

async function findByTokens(db: Database, presented: Presented[]): Promise<ReadonlyMap<string, FoundOperator>> {
  const hashes = presented.map(({ tokenHash }) => tokenHash);
  const rows = await db.drizzle
    .select({ operator: operatorColumns, secret: operatorSecret, readAt: sql<Date>`store_now()` })
    .from(operatorSecret)
    .innerJoin(operator, eq(operator.id, operatorSecret.operatorId))
    .where(and(inArray(operatorSecret.hash, hashes), isForManagement));
  const byHash = new Map(rows.map((found) => [found.secret.hash.toHex(), found]));
  const all = new Map<string, FoundOperator>();
  for (const one of presented) {
    const found = byHash.get(one.tokenHash.toHex());
    if (!found) continue;
    await noteUse(db, found, one.address);
    all.set(nameOf(one), found);
  }
  return all;
}

async function noteUse(db: Database, { operator, readAt }: FoundOperator, address: string | null) {
  const { id, lastUsedAt, lastUsedFrom } = operator;
  const isRecent = lastUsedAt !== null && readAt.getTime() - lastUsedAt.getTime() < used_minutes * 60_000;
  if (isRecent && lastUsedFrom === address) return;
  await db.query("update operator set last_used_at = store_now(), last_used_from = $2 where id = $1", [
    bare(id, "op_"),
    address,
  ]);
}

async function lock(tx: Transaction, id: string): Promise<OperatorRow | null> {
  const uuid = uuidOf(id, "op_");
  if (uuid === null) return null;
  const [row] = await tx.drizzle.select().from(operator).where(eq(operator.id, uuid)).for("update");
  return row ?? null;
}

async function read(db: Transaction, wanted: SQL): Promise<Operator | null> {
  return (await db.drizzle.select(operatorColumns).from(operator).where(wanted))[0] ?? null;
}
