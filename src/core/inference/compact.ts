/**
 * The fields without those that are null or undefined. In a protocol a field may be null or left out; in the centre it is
 * left out. Spread the result into the object to which the fields belong.
 */
export function compact<Fields extends object>(fields: Fields): Compact<Fields> {
  const kept: Compact<Fields> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && value !== null) kept[name] = value;
  }
  return kept;
}

type Compact<Fields> = { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
