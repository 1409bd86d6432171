/** What examples of the management contract are about: one organization, its key, an operator. */
export const exampleIds = {
  organization: "org_019aa0f0c1d27e37a4b8c9d0e1f2a3b4",
  key: "key_019aa0f0c1d27e37a4b8c9d0e1f2a3b5",
  team: "team_019aa0f0c1d27e37a4b8c9d0e1f2a3b8",
  operator: "op_019aa0f0c1d27e37a4b8c9d0e1f2a3b6",
  request: "req_019aa0f0c1d27e37a4b8c9d0e1f2a3b7",
};

export const exampleAt = "2026-11-21T03:00:00.000Z";

export const exampleSecret = {
  suffix: "x7Qd",
  created_at: exampleAt,
  expires_at: null,
  revoked_at: null,
};
