/** A narrow screen: each row of a table is a block of several lines there, so that lists are shorter. */

export const isNarrow = () => matchMedia("(width < 640px)").matches;

/** The rows of a list or a report that are shown at first. */
export const rowsAtFirst = () => (isNarrow() ? 10 : 50);
