/**
 * Devices that wait for approval, over SQL. Each decision is made once and returned once, however many requests race.
 */

import { bare, idOf } from "../../core/store/ids.ts";
import type {
  DeviceAnswer,
  DeviceApproval,
  DeviceRequests,
  PendingDevice,
} from "../../features/identity/store/device-requests.ts";
import { transact } from "./acts.ts";
import type { Database, Transaction } from "./database.ts";

const waits = "decision is null and expires_at > store_now()";

/** The seconds that are added to the polling interval of a device that asked too soon (RFC 8628, 3.5). */
const slower_s = 5;

export function deviceRequests(db: Database): DeviceRequests {
  const decided = async (set: string, values: readonly unknown[]) =>
    (await db.query(`update device_request set ${set} where user_hash = $1 and ${waits} returning agent`, values))
      .length > 0;
  return {
    async add({ deviceHash, userHash, agent, address, lasts_ms, interval_s }, { of_address_max, all_max }) {
      const rows = await db.query(
        `insert into device_request (device_hash, user_hash, agent, address, created_at, expires_at, interval_s)
         select $1, $2, $3, $4, store_now(), store_now() + $5::bigint * interval '1 ms', $6::integer
         where (select count(*) from device_request where address = $4 and ${waits}) < $7::integer
           and (select count(*) from device_request where ${waits}) < $8::integer
         returning agent`,
        [deviceHash, userHash, agent, address, lasts_ms, interval_s, of_address_max, all_max],
      );
      return rows.length > 0 ? "added" : "full";
    },

    async find(userHash) {
      const [row] = await db.query<PendingDevice>(
        `select agent, address, created_at as "createdAt" from device_request where user_hash = $1 and ${waits}`,
        [userHash],
      );
      return row ?? null;
    },

    approve: (userHash, { personId, organizationId, issuerSession, tokens }) =>
      decided("decision = 'approved', person_id = $2, organization_id = $3, issuer_session = $4, tokens = $5", [
        userHash,
        bare(personId, "per_"),
        bare(organizationId, "org_"),
        issuerSession,
        tokens,
      ]),

    deny: (userHash) => decided("decision = 'denied'", [userHash]),

    poll: (deviceHash) => transact(db, (tx) => poll(tx, deviceHash)),

    async forget() {
      const rows = await db.query(
        `delete from device_request where device_hash in (
           select device_hash from device_request where expires_at <= store_now() limit 1000) returning agent`,
      );
      return rows.length;
    },
  };
}

interface Row {
  decision: "approved" | "denied" | null;
  agent: string;
  address: string;
  personId: string;
  organizationId: string;
  issuerSession: string | null;
  tokens: Uint8Array | null;
  interval_s: number;
  isOver: boolean;
  isTooSoon: boolean;
}

async function poll(tx: Transaction, deviceHash: Uint8Array): Promise<DeviceAnswer> {
  const [row] = await tx.query<Row>(
    `select decision, agent, address, person_id as "personId", organization_id as "organizationId",
       issuer_session as "issuerSession", tokens, interval_s, expires_at <= store_now() as "isOver",
       coalesce(polled_at + interval_s * interval '1 s' > store_now(), false) as "isTooSoon"
     from device_request where device_hash = $1 for update`,
    [deviceHash],
  );
  if (!row || row.isOver) return { is: "unknown" };
  if (row.decision === null) return waiting(tx, deviceHash, row);
  await tx.query("delete from device_request where device_hash = $1", [deviceHash]);
  if (row.decision === "denied") return { is: "denied" };
  const { agent, address, issuerSession, tokens } = row;
  const approval: DeviceApproval = {
    personId: idOf(row.personId, "per_"),
    organizationId: idOf(row.organizationId, "org_"),
    issuerSession,
    tokens,
  };
  return { is: "approved", agent, address, ...approval };
}

async function waiting(tx: Transaction, deviceHash: Uint8Array, row: Row): Promise<DeviceAnswer> {
  const interval_s = row.interval_s + (row.isTooSoon ? slower_s : 0);
  await tx.query("update device_request set polled_at = store_now(), interval_s = $2 where device_hash = $1", [
    deviceHash,
    interval_s,
  ]);
  return row.isTooSoon ? { is: "too_soon", interval_s } : { is: "pending" };
}
