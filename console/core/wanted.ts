/** The page that somebody wanted before a sign-in at an issuer, which comes back to the first one. It stays in this tab. */
const stored = "sluice-wanted";

export const keepWanted = () => sessionStorage.setItem(stored, location.pathname + location.search);

/** Null: nobody wanted one. It is taken once. */
export function takeWanted(): string | null {
  const wanted = sessionStorage.getItem(stored);
  sessionStorage.removeItem(stored);
  return wanted;
}
