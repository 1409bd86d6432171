/** Recognises the dialect of an engine by the signs in dialects.ts, such as its host name. Pure. */
import { type DialectName, dialectNames, dialects } from "../core/protocol/dialects.ts";

const all = dialectNames.map((name) => [name, dialects[name].signs] as const);

/**
 * The dialect whose host names match the host. If there is none: the dialect that one of the models' owners
 * (`owned_by`) identifies. Null if neither gives a dialect.
 */
export function dialectBySigns(host: string, owners: readonly unknown[]): DialectName | null {
  const isOf = (name: string) => host === name || host.endsWith(`.${name}`);
  return (
    all.find(([, signs]) => signs.hosts.some(isOf))?.[0] ??
    all.find(([, signs]) => signs.owners.some((owner) => owners.includes(owner)))?.[0] ??
    null
  );
}

/** The pages by which an engine is recognised if neither its host nor its list of models (`owned_by`) identifies it. */
export const signPages = all.flatMap(([name, { page }]) => (page ? [{ ...page, name }] : []));

/** Whether the signs of an engine name another dialect than its configured one. */
export function isContradicted(given: DialectName | undefined, signs: DialectName | null): boolean {
  return given !== undefined && signs !== null && given !== signs;
}
