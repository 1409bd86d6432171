interface Key {
  organization: string;
  state: string;
  scopes: readonly string[];
}

/**
 * The active keys of the organization that have the right to inference. While the keys of a newly chosen organization
 * load, `keys` still holds those of the previous one, and no call may use these.
 */
export function callingKeys<One extends Key>(keys: readonly One[], organization: string | null): One[] {
  return keys.filter(
    (key) => key.organization === organization && key.state === "active" && key.scopes.includes("inference:create"),
  );
}
