/** The headers by which engines of both OpenAI protocols know who asks. */
export function bearer(key: string | null): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}
