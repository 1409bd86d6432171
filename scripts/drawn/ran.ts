// The name alone: to import counter.ts makes the file.

/** Every process of the tree appends a line for each part that it runs: the path and the part's number. */
export const ran = "ran.txt";
