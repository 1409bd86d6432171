/** What the management interface answers, as schemas; records.ts makes the values. */
import Type from "typebox";
import { RequestReceipt } from "../../management/receipt-shape.ts";
import { count, instant, nullable, oneOf } from "../../protocol/shapes/contract.ts";
import { keyStates, organizationStatuses, scopes } from "../../store/directory.ts";
import { windowKinds } from "../../store/ledger.ts";
import { roles } from "../../store/operators.ts";

export const units = () => Type.Integer({ minimum: 0, description: "Micro-units." });
export const id = (prefix: string) => Type.String({ pattern: `^${prefix}_[0-9a-f]{32}$` });
export const limit = () => nullable(Type.Integer({ minimum: 0, description: "Null: no limit." }));
/** Of a plan, a key or a team. */
export const limitFields = () => ({
  session: limit(),
  week: limit(),
  month: limit(),
  requests_per_minute: limit(),
  tokens_per_minute: limit(),
  concurrent_requests: limit(),
});

const days = (description: string) => nullable(Type.Integer({ minimum: 1, description }));
export const version = () => Type.Integer({ minimum: 1, description: "Rises with each change; also sent as `etag`." });

export const OrganizationRecord = Type.Object(
  {
    id: id("org"),
    slug: Type.String({ pattern: "^[a-z0-9-]{1,63}$" }),
    former_slugs: Type.Array(Type.String(), { description: "Those that it had before. None is ever another's." }),
    name: Type.String(),
    status: oneOf([...organizationStatuses]),
    plan: nullable(Type.String({ description: "Null: inference is refused." })),
    anchor_at: instant("Where weeks and months are counted from."),
    next_anchor: nullable(
      Type.Object({ anchor_at: instant("A new anchor."), counts_from: instant("When it begins to count.") }),
    ),
    extra_usage: Type.Object({ enabled: Type.Boolean(), cap_units: nullable(units()) }),
    key_lifetime_max_days: days("How long a key works from when it is made or rotated. Null: no limit."),
    key_unused_max_days: days("How long a key works from its last use. Null: no limit."),
    keeps_content: Type.Boolean({ description: "False: no word of a request or an answer is stored." }),
    created_at: instant("When it was created."),
    closed_at: nullable(instant("When it was closed.")),
    version: version(),
  },
  { $id: "Organization" },
);

const SecretRecord = Type.Object(
  {
    prefix: Type.String({ description: "The first 8 characters." }),
    suffix: Type.String({ description: "The last 4 characters." }),
    created_at: instant("When it was made."),
    expires_at: nullable(instant("When a rotation's grace ends.")),
    revoked_at: nullable(instant("When it was revoked.")),
  },
  { $id: "Secret", description: "One secret, as it may be shown." },
);

const life = {
  created_at: instant("When it was created."),
  expires_at: nullable(instant("When it expires.")),
  revoked_at: nullable(instant("When it was revoked.")),
  last_used_at: nullable(instant("When it was last used, about.")),
};

export const keyFields = {
  id: id("key"),
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug." }),
  name: Type.String(),
  scopes: Type.Array(oneOf([...scopes])),
  allowed_models: nullable(Type.Array(Type.String(), { description: "Null: every model." })),
  ...life,
  last_used_from: nullable(Type.String({ description: "An address; of IPv6, its /64." })),
  created_by: nullable(Type.String({ description: "`operator:<name>`, `cli:<user>` or `service`." })),
  owner: nullable(Type.String()),
  labels: Type.Record(Type.String(), Type.String()),
  allowed_addresses: nullable(Type.Array(Type.String(), { description: "Null: every address." })),
  state: oneOf([...keyStates], { description: "When this was read." }),
  ends_at: nullable(
    instant(
      "When it ended or will, as things stand: revoked, expired, older or longer unused than its organization allows.",
    ),
  ),
  version: version(),
  secrets: Type.Array(SecretRecord, { description: "Newest first." }),
};
export const KeyRecord = Type.Object(keyFields, { $id: "Key" });
const once = "In plain text, this once. Null if the request was a repeat: rotate to get another.";
export const NewKeyRecord = Type.Object(
  { ...keyFields, key: nullable(Type.String({ description: `The key. ${once}` })) },
  { $id: "NewKey" },
);

const operatorFields = {
  id: id("op"),
  name: Type.String(),
  role: oneOf([...roles]),
  organization_id: nullable(id("org")),
  created_by: Type.String(),
  ...life,
  last_used_from: nullable(Type.String({ description: "An address." })),
  secrets: Type.Array(SecretRecord, { description: "Newest first." }),
};
export const OperatorRecord = Type.Object(operatorFields, { $id: "Operator" });
export const NewOperatorRecord = Type.Object(
  { ...operatorFields, token: nullable(Type.String({ description: `The token. ${once}` })) },
  { $id: "NewOperator" },
);

export const PlanRecord = Type.Object(
  {
    name: Type.String(),
    source: oneOf(["file", "management"], {
      description: "`file`: sluice.yaml or the defaults, where alone it can be changed. `management`: made here.",
    }),
    version: version(),
    changed_at: nullable(instant("From when on these limits count. Null: not in force yet.")),
    ...limitFields(),
  },
  { $id: "Plan" },
);

const WindowRecord = Type.Object(
  {
    usage_percent: Type.Number({ minimum: 0 }),
    used: units(),
    held: units(),
    limit: limit(),
    starts_at: instant("When it began."),
    reset_at: instant("When it ends."),
  },
  { $id: "Window" },
);
export const OrganizationUsageRecord = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String(),
    plan: nullable(Type.String()),
    at: instant("When this was read."),
    session: WindowRecord,
    week: WindowRecord,
    month: WindowRecord,
    extra_usage: Type.Object({ enabled: Type.Boolean(), cap_units: nullable(units()), used: units(), held: units() }),
    running_requests: count(),
    concurrent_requests: limit(),
  },
  { $id: "OrganizationUsage" },
);

export const UsageCheckRecord = Type.Object(
  {
    differences: Type.Array(
      Type.Object({
        organization_id: nullable(Type.String()),
        organization: nullable(Type.String()),
        subject_id: nullable(Type.String({ description: "UUID of its key or team; null: its own total." })),
        window: oneOf([...windowKinds, "extra", "running", "hour", "day", "pass", "chain"]),
        starts_at: nullable(instant("When the window began, or the entry of the audit log was written.")),
        audit_entry: nullable(
          Type.Integer({
            minimum: 1,
            description:
              "Of `pass`: the entry of the audit log that says otherwise. Of `chain`: one at or behind which it is broken.",
          }),
        ),
        used: Type.Integer(),
        recorded: Type.Integer(),
        held: Type.Integer(),
        holding: Type.Integer(),
      }),
      { description: "Empty: every total equals the sum of its records." },
    ),
    trusted: Type.Object(
      { windows: count(), records: count(), days: count(), day_records: count() },
      { description: "What was taken on trust: sealed windows and days, and their records." },
    ),
    lost: Type.Object(
      {
        receipts: count(),
        units: units(),
        noticed_at: nullable(instant("When the last of them was noticed.")),
        moved_at: nullable(instant("When another server was met last.")),
      },
      { description: "Confirmed settlements that the database did not have any more." },
    ),
  },
  { $id: "UsageCheck" },
);

export const UsageAdjustmentRecord = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String(),
    reason: Type.String(),
    entries: Type.Array(
      Type.Object({
        id: nullable(id("req")),
        window: oneOf([...windowKinds, "extra"]),
        units: nullable(Type.Integer({ description: "What was added. Null: no session was open." })),
      }),
    ),
  },
  { $id: "UsageAdjustment" },
);

const ExactWindow = nullable(
  Type.Object({
    usage_percent_before: Type.Number(),
    usage_percent_after: nullable(Type.Number()),
    starts_at: instant("When it began."),
    reset_at: instant("When it ends."),
    limit: limit(),
    used_before: units(),
    used_after: nullable(units()),
  }),
);
export const OperatorRequestRecord = Type.Object(
  {
    ...RequestReceipt.properties,
    model: nullable(Type.String()),
    windows: nullable(Type.Object({ session: ExactWindow, week: ExactWindow, month: ExactWindow })),
    organization_id: nullable(id("org")),
    organization: nullable(Type.String()),
    route: nullable(
      Type.Object({
        upstream: Type.String(),
        attempts: count(),
        first_part_ms: nullable(Type.Number()),
        tried: Type.Array(
          Type.Object({
            upstream: Type.String(),
            replica: Type.Optional(Type.String({ description: "The engine's address, where its name has several." })),
            outcome: Type.String(),
            ms: Type.Number(),
          }),
          { description: "Each attempt, where there was more than one, or its upstream has several addresses." },
        ),
      }),
    ),
    report_rejected: Type.Unknown({ description: "What an engine reported and was not believed; else null." }),
    duration_ms: nullable(Type.Number()),
  },
  { $id: "Request", description: "The receipt that the key's owner reads, and what only operators see." },
);

export const AuditRecord = Type.Object(
  {
    number: Type.Integer({ minimum: 1, description: "Without gaps." }),
    at: instant("When it was done."),
    actor: Type.String({ description: "`operator:<name>`, `cli:<user>` or `service`." }),
    address: nullable(Type.String({ description: "Where it was asked from. Null: on the node." })),
    action: Type.String(),
    organization_id: nullable(id("org")),
    subject: Type.String({ description: "The id of what it was done to." }),
    details: Type.Unknown({ description: "What changed; `before` is what it was. No secrets." }),
    hash: nullable(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description: "SHA-256 over the hash of the entry before and this one. Null: from before the chain.",
      }),
    ),
  },
  { $id: "AuditEntry" },
);
export const AuditHeadRecord = Type.Object({ number: count(), hash: Type.String() }, { $id: "AuditHead" });

const noticesFields = {
  organization_id: id("org"),
  organization: Type.String(),
  url: Type.String(),
  shares: Type.Array(Type.Integer(), { description: "Percentages of a window's limit, ascending." }),
  key_expiry_days: count(),
  changed_at: instant("When this was set."),
  waiting: count(),
  problem: nullable(Type.String({ description: "Why the last notice that could not be delivered was not." })),
};
export const NoticesRecord = Type.Object(noticesFields, { $id: "Notices" });
export const SetNoticesRecord = Type.Object(
  {
    ...noticesFields,
    secret: nullable(Type.String({ description: "A new secret, in plain text, this once. Null: it stays as it was." })),
  },
  { $id: "SetNotices" },
);
