/** Knows the dialect of an engine by the signs that the rows of dialects.ts have for it. Pure. */
import { type DialectName, dialectNames, dialects } from "../dialects.ts";

const all = dialectNames.map((name) => [name, dialects[name].signs] as const);

/** The dialect of the first of these owners that one has, else that of the host; null if nothing tells. */
export function dialectBySigns(host: string, owners: readonly unknown[]): DialectName | null {
  const isOf = (name: string) => host === name || host.endsWith(`.${name}`);
  return (
    all.find(([, signs]) => signs.hosts.some(isOf))?.[0] ??
    all.find(([, signs]) => signs.owners.some((owner) => owners.includes(owner)))?.[0] ??
    null
  );
}

/** The pages by which engines are known whose models name no owner of theirs. */
export const signPages = all.flatMap(([name, { page }]) => (page ? [{ ...page, name }] : []));

/** Whether the signs of an engine name another dialect than the one that it was given. */
export function isContradicted(given: DialectName | undefined, signs: DialectName | null): boolean {
  return given !== undefined && signs !== null && given !== signs;
}
