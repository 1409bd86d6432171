/** Creates organizations and keys with the commands that an operator uses. */
import type { Sluice } from "./sluice.ts";

type Service = Pick<Sluice, "json">;
interface NewKey {
  id: string;
  key: string;
}

/** Creates an organization on a plan, and returns its slug. */
export async function newOrganization({ json }: Service, plan: string): Promise<string> {
  const slug = `${plan}-${crypto.randomUUID().slice(0, 8)}`;
  await json("org", "create", slug, "--plan", plan);
  return slug;
}

/** Creates a key of an organization. `options` are those of `sluice key create`. */
export function newKey({ json }: Service, organization: string, ...options: string[]): Promise<NewKey> {
  return json("key", "create", "--org", organization, "--name", "test", ...options);
}

/** Creates an organization on a plan, and a key of it. In the result, `organization` is the slug. */
export async function newMember(
  service: Service,
  plan: string,
  ...options: string[]
): Promise<NewKey & { organization: string }> {
  const organization = await newOrganization(service, plan);
  return { organization, ...(await newKey(service, organization, ...options)) };
}
