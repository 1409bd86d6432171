/** Whether the screen is narrow: each row of a table is then a block of several lines, so lists are shorter. */

export const isNarrow = () => matchMedia("(width < 640px)").matches;

/** The number of rows that a list or a report shows at first. */
export const rowsAtFirst = () => (isNarrow() ? 10 : 50);
