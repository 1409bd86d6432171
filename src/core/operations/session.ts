/** The headers in which clients name their session: Claude Code, Codex, opencode and others. */
const names = ["x-claude-code-session-id", "session-id", "session_id", "x-session-affinity"] as const;

export function sessionOf(headers: Headers): string | null {
  for (const name of names) {
    const value = headers.get(name);
    if (value) return value;
  }
  return null;
}
