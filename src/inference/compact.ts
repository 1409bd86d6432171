/**
 * The fields that are there. Protocols say "absent" with null or by leaving a field out; the centre only leaves it out.
 * Spread it into the object that the fields belong to.
 */
export function compact<Fields extends object>(fields: Fields): Compact<Fields> {
  const kept: Compact<Fields> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && value !== null) kept[name] = value;
  }
  return kept;
}

export type Compact<Fields> = { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
