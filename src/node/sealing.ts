/** Makes the encryption of small secrets, with the keys of SLUICE_SECRET_KEY. Null if that variable is not set. */

import type { ServerSettings } from "../config/configuration.ts";
import { sealing } from "../config/sealed.ts";
import type { Sealing } from "../core/store/sealing.ts";

export function sealingOf({ secretKeys }: Pick<ServerSettings, "secretKeys">): Sealing | null {
  return secretKeys ? sealing(secretKeys, randomBytes) : null;
}

export const randomBytes = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
