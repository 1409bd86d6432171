// This file holds only the name of ran.txt, because importing counter.ts creates that file.

/**
 * The file to which every process of the tree appends a line for each part that it runs: the path and the part's
 * number.
 */
export const ran = "ran.txt";
