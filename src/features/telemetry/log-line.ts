/** Formats a line of the log as JSON or logfmt. Pure. */

export type LogFormat = "json" | "logfmt";

type Fields = Record<string, unknown>;

export function lineOf(format: LogFormat, fields: Fields): string {
  return format === "json" ? `${JSON.stringify(fields)}\n` : `${logfmt(fields)}\n`;
}

function logfmt(fields: Fields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${logfmtValue(value)}`)
    .join(" ");
}

/** The value in logfmt, quoted as JSON if a reader could take it for something else. */
function logfmtValue(value: unknown): string {
  if (value === null) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return /^[!#-<>-~]+$/.test(text) && !text.includes("\\") ? text : JSON.stringify(text);
}
