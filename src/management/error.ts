/** An administrator asked for something that cannot be done: the message says why, and what to do instead. */
export class ManagementError extends Error {
  override name = "ManagementError";
}

export function fail(message: string): never {
  throw new ManagementError(message);
}
