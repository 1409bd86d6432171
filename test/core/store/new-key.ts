/** The fields that tests give a new key. */
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { NewSecret } from "../../../src/core/store/directory.ts";

/** The fields of a key that never expires, may do all that its scopes allow, and has no limits and no team. */
export const unrestricted = {
  ...{ models: null, expiresAt: null, owner: null, labels: {}, allowFrom: null },
  ...{ teamId: null, limits: noBudget },
};

export const newSecret = (): NewSecret => ({
  hash: crypto.getRandomValues(new Uint8Array(32)),
  prefix: "slk_abcd",
  suffix: "wxyz",
});
