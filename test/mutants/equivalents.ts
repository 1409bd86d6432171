// Drawn mutants that change nothing that anybody could see, or nothing that is promised, each with the reason. They are not
// drawn again. `npm run mutants -- --drawn` prints the entries whose mutant no longer exists.

export const equivalents: Readonly<Record<string, string>> = {};
