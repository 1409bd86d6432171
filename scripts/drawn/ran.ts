// The name of ran.txt is in a file of its own, because importing counter.ts creates ran.txt.

/**
 * The file to which each process of the instrumented copy appends a line for each part that it runs: the path and the
 * part's number.
 */
export const ran = "ran.txt";
