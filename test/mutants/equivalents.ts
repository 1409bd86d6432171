// Drawn mutants that change nothing anybody could see, or nothing that is promised, each with the reason. They are not
// drawn again. `npm run mutants -- --drawn` names entries whose mutant is gone.

export const equivalents: Readonly<Record<string, string>> = {};
