/** Calls to another server. */
export async function reached({ url }: { url: string }, work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${url} cannot be reached: ${why}`, { cause });
  }
}

export async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return null;
  }
}
