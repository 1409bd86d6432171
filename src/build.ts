/** What the build says of itself. */

/** Set by the build to the version and the commit it was made from. */
declare const SLUICE_BUILD: string | undefined;

/** Whether this is the executable, and not run from source. */
export const isCompiled = typeof SLUICE_BUILD !== "undefined";

/** Null: it runs from source. */
export const buildVersion = typeof SLUICE_BUILD === "undefined" ? null : SLUICE_BUILD;
