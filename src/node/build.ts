/** The version and the commit, set by the build. */
declare const SLUICE_BUILD: string | undefined;

/** The version; null if the program runs from source. */
export const builtVersion: string | null = typeof SLUICE_BUILD === "undefined" ? null : SLUICE_BUILD;
export const isCompiled = builtVersion !== null;
