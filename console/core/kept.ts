/** Values that a tab keeps for as long as it is open, reloads included. */

interface Kept {
  get(): string | null;
  set(value: string | null): void;
}

/** The secret that the page itself keeps for the session: the cookie alone gives no access (docs/console.md). */
export const keptSecret = keptAs("sluice-console");

/** The organization in which the person currently acts, for people with memberships in several. */
export const keptOrganization = keptAs("sluice-organization");

/** The page that somebody opened before a sign-in at an issuer, because the issuer always returns to the first page. */
export const keptWanted = keptAs("sluice-wanted");

function keptAs(name: string): Kept {
  return {
    get: () => sessionStorage.getItem(name),
    set(value) {
      if (value === null) sessionStorage.removeItem(name);
      else sessionStorage.setItem(name, value);
    },
  };
}
