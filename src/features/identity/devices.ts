/**
 * Sign-in of a device (RFC 8628). The device requests two codes; a person who has signed in with a browser types the
 * short code and approves the device; the device then gets tokens for the long code.
 */

import { hashOf, type IdentityParts, secretText } from "./identity.ts";
import type { CurrentSession } from "./sessions.ts";
import type { DeviceRequestLimits, PendingDevice } from "./store/device-requests.ts";
import type { Membership } from "./store/people.ts";

export interface DeviceAuthorization {
  deviceCode: string;
  /** The short code, which people type: `BCDF-GHJK`. */
  userCode: string;
  lasts_s: number;
  interval_s: number;
}

const lasts_s = 600;
const interval_s = 5;
const limits: DeviceRequestLimits = { of_address_max: 10, all_max: 10_000 };

/**
 * Creates a device request. "full": too many requests wait for approval, from this address or from all addresses
 * together.
 */
export async function requestDevice(
  { devices, random }: IdentityParts,
  { agent, address }: Pick<PendingDevice, "agent" | "address">,
): Promise<DeviceAuthorization | "full"> {
  const deviceCode = secretText(random);
  const userCode = newUserCode(random);
  const added = await devices.add(
    {
      deviceHash: hashOf(deviceCode),
      userHash: hashOf(userCode),
      agent,
      address,
      lasts_ms: lasts_s * 1000,
      interval_s,
    },
    limits,
  );
  return added === "full" ? "full" : { deviceCode, userCode, lasts_s, interval_s };
}

/** The characters of codes. There are no vowels, so that no code is a word. */
const characters = "BCDFGHJKLMNPQRSTVWXZ";
const userCode_chars = 8;

function newUserCode(random: IdentityParts["random"]): string {
  let code = "";
  while (code.length < userCode_chars)
    // 240 is the largest multiple of 20 that fits into a byte. Larger bytes are skipped, because they would favour some
    // characters.
    for (const byte of random(16)) if (byte < 240 && code.length < userCode_chars) code += characters[byte % 20];
  return withHyphen(code);
}

const withHyphen = (code: string) => `${code.slice(0, 4)}-${code.slice(4)}`;

/**
 * The stored form of a code that a person typed: upper or lower case, spaces and a missing hyphen do not matter. Null:
 * the text is not a code.
 */
export function userCodeIn(text: string): string | null {
  if (text.length > 64) return null;
  const code = text.toUpperCase().replaceAll(/[^A-Z0-9]/g, "");
  return code.length === userCode_chars && [...code].every((one) => characters.includes(one)) ? withHyphen(code) : null;
}

const wrong_max = 10;
const wrong_ms = 10 * 60_000;

/**
 * The device request that waits under this code. "too_many": this address or this person has tried too many wrong
 * codes.
 */
export async function findDevice(
  { devices, uses }: IdentityParts,
  { text, address, personId }: { text: string; address: string; personId: string },
): Promise<{ code: string; device: PendingDevice } | "none" | "too_many"> {
  const tries = [
    ["user code of an address", address],
    ["user code of a person", personId],
  ] as const;
  // Each attempt is counted before the code is looked up, so that parallel attempts are limited, too.
  const counts = await Promise.all(tries.map(([about, value]) => uses.count(about, value, wrong_ms)));
  if (counts.some((count) => count > wrong_max)) return "too_many";
  const code = userCodeIn(text);
  const device = code === null ? null : await devices.find(hashOf(code));
  if (code === null || device === null) return "none";
  await Promise.all(tries.map(([about, value]) => uses.uncount(about, value)));
  return { code, device };
}

/** The memberships through which the person may approve a device: all memberships in organizations. */
export function placesOf({ known }: Pick<CurrentSession, "known">): Membership[] {
  return known.memberships.filter(({ organizationId }) => organizationId !== null);
}

/**
 * Approves a device for an organization. False: no request waits under this code, or the person is not a member. The
 * browser's session ends, since its issuer tokens go to the device.
 */
export async function approveDevice(
  { devices, sessions }: IdentityParts,
  current: CurrentSession,
  { code, organizationId }: { code: string; organizationId: string },
): Promise<boolean> {
  if (!placesOf(current).some((one) => one.organizationId === organizationId)) return false;
  const { hash, personId, issuerSession, tokens } = current.session;
  const isDone = await devices.approve(hashOf(code), { personId, organizationId, issuerSession, tokens });
  if (isDone) await sessions.end(hash);
  return isDone;
}

export function denyDevice({ devices }: IdentityParts, code: string): Promise<boolean> {
  return devices.deny(hashOf(code));
}
