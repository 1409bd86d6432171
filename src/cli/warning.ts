/** Worth knowing, but nothing that has to be fixed. */
export class Warning extends Error {}
