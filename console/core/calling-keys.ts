interface Key {
  organization: string;
  state: string;
  scopes: readonly string[];
}

/**
 * The active keys of the organization that have the right to inference. While the keys of an organization are on their
 * way, the answer is still that of the one before, whose keys must not be called with.
 */
export function callingKeys<One extends Key>(keys: readonly One[], organization: string | null): One[] {
  return keys.filter(
    (key) => key.organization === organization && key.state === "active" && key.scopes.includes("inference:create"),
  );
}
