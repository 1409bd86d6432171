/** Finds a person by the ID, or by an e-mail address that an issuer has verified. */
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import { page_max } from "./shapes.ts";

/** The ways to name a person, as the help and the contract describe them. */
export const personNamed = "ID or verified e-mail address of the person";

/**
 * The ID of the person with this address; a name that is no e-mail address is returned unchanged. Refuses an address
 * that nobody has, or that several people have.
 */
export async function personIdOf(context: ManagementContext, name: string): Promise<string> {
  if (!name.includes("@")) return name;
  const all = await withAddress(context, name);
  const found = all.filter(({ isEmailVerified }) => isEmailVerified);
  if (found.length === 1) return found[0]!.id;
  const address = parse.excerpt(name);
  if (found.length > 1)
    return fail(`${found.length} people have the address '${address}': ${listed(found)}. Name one by the ID.`);
  if (all.length > 0)
    return fail(`No issuer has verified the address '${address}' of ${listed(all)}. Name the person by the ID.`);
  return fail(
    `There is nobody with the address '${address}'. To list all people, run: sluice person list`,
    "resource_not_found",
  );
}

/** The people with this address whom the actor sees. Case does not matter. */
async function withAddress({ people, person, within }: ManagementContext, address: string) {
  const isIts = ({ email }: { email: string | null }) => email?.toLowerCase() === address.toLowerCase();
  if (person !== null) return [await people.findPerson(person)].flatMap((own) => own ?? []).filter(isIts);
  // Only one page is read. The search also finds addresses that contain this address, but hardly more than a page of
  // them.
  const { items } = await people.pagePeople({ limit: page_max, organizationId: within ?? undefined, search: address });
  return items.filter(isIts);
}

const listed = (people: readonly { id: string; name: string | null; issuer: string }[]) =>
  people.map(({ id, name, issuer }) => `${id} (${[name, issuer].filter(Boolean).join(", ")})`).join(", ");
