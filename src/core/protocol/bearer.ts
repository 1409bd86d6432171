/** The header `authorization` for engines of both OpenAI protocols; none without a key. */
export function bearer(key: string | null): Record<string, string> {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}
