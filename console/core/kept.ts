/** Values that a tab keeps for as long as it is open, reloads included. */

export interface Kept {
  get(): string | null;
  set(value: string | null): void;
}

/** The page's own secret of the session: a cookie alone opens nothing (docs/console.md). */
export const keptSecret = keptAs("sluice-console");

/** The organization that the person currently acts in, for people in several. */
export const keptOrganization = keptAs("sluice-organization");

/** The page that somebody opened before a sign-in at an issuer, which always returns to the first page. */
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
