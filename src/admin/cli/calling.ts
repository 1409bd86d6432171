/** Calls to another server: `reached` throws an Error that names the URL if the server cannot be reached. */
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
