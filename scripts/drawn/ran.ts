// Only the name is here, because importing counter.ts creates the file.

/**
 * The file to which every process of the tree appends a line for each part that it runs: the path and the part's
 * number.
 */
export const ran = "ran.txt";
