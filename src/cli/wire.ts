/** Values on the management socket: JSON that keeps Dates. Pure. */

/** `{ "$date": "…" }` stands for a Date; a key that begins with `$` by itself gets one more. */
export function pack(value: unknown): unknown {
  if (value instanceof Date) return { $date: value.toISOString() };
  if (Array.isArray(value)) return value.map(pack);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key.startsWith("$") ? `$${key}` : key, pack(one)]),
  );
}

export function unpack(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpack);
  if (typeof value !== "object" || value === null) return value;
  if ("$date" in value && typeof value.$date === "string") return new Date(value.$date);
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key.startsWith("$$") ? key.slice(1) : key, unpack(one)]),
  );
}
