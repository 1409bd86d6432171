/**
 * The ids of stored objects as users see them: a prefix and the 32 hex digits of a UUID, nearly always a UUIDv7, which
 * sorts by time.
 */
export type IdPrefix =
  | "dest_"
  | "org_"
  | "inv_"
  | "key_"
  | "lim_"
  | "lreq_"
  | "mem_"
  | "op_"
  | "per_"
  | "req_"
  | "resp_"
  | "team_";

/** The UUID inside an id, with dashes, as Postgres takes it; null if the text is no id with this prefix. */
export function uuidOf(id: string, prefix: IdPrefix): string | null {
  const hex = id.startsWith(prefix) ? id.slice(prefix.length) : "";
  if (!/^[0-9a-f]{32}$/.test(hex)) return null;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The UUID inside an id that this service made. Throws a TypeError for any other text. */
export function bare(id: string, prefix: IdPrefix): string {
  const uuid = uuidOf(id, prefix);
  if (uuid === null) throw notAnId(id, prefix);
  return uuid;
}

/** As `bare`, without dashes, which Postgres accepts too. */
export function hexOf(id: string, prefix: IdPrefix): string {
  if (!(id.startsWith(prefix) && id.length === prefix.length + 32 && lastDigits.test(id))) throw notAnId(id, prefix);
  return id.slice(prefix.length);
}

const lastDigits = /[0-9a-f]{32}$/;

function notAnId(id: string, prefix: IdPrefix): TypeError {
  return new TypeError(`not an id that begins with ${prefix}: ${JSON.stringify(id.slice(0, 64))}`);
}

export function idOf(uuid: string, prefix: IdPrefix): string {
  return prefix + uuid.replaceAll("-", "");
}

export const uuid_min = "00000000-0000-0000-0000-000000000000";
export const uuid_max = "ffffffff-ffff-ffff-ffff-ffffffffffff";
