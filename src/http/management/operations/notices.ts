/** Webhooks of organizations: docs/notices.md. */
import Type from "typebox";
import type { NoticeHook } from "../../../store/notice.ts";
import { exampleAt, exampleIds } from "../examples.ts";
import { type ManagementOperation, managementOperation, words } from "../operation.ts";
import { noticesJson, setNoticesJson } from "../records.ts";
import { NoticesRecord, SetNoticesRecord } from "../shapes.ts";

const example: Type.Static<typeof NoticesRecord> = {
  organization_id: exampleIds.organization,
  organization: "acme",
  url: "https://hooks.acme.example/sluice",
  shares: [80, 100],
  key_expiry_days: 14,
  changed_at: exampleAt,
  waiting: 0,
  problem: null,
};

type Read = NoticeHook & { organization: string };
const read = ({ organization: slug, ...hook }: Read) => ({
  organization: { id: hook.organizationId, slug } as never,
  hook,
});
const path = "/organizations/{id}/notices";
const common = { id: "organization", tag: "Notices" } as const;

export const noticeOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ ...common, verb: "findNotices", method: "get", path, kind: "reading", also: ["viewer", "organization-admin"] },
    summary: "Show the webhook of an organization",
    description: "What it is told, and whether the last notice arrived; never the secret.",
    answers: NoticesRecord,
    example: { id: "acme", answer: example },
    encode: noticesJson,
    read,
  }),
  managementOperation({
    ...{ ...common, verb: "setNotices", method: "put", path, kind: "act", also: [] },
    summary: "Set the webhook of an organization",
    description:
      "What is left out stays, or of a new one has its default. A new webhook gets a secret that signs what it is sent.",
    takes: Type.Object({
      url: Type.Optional(words("Begins with `https://`.")),
      shares: Type.Optional(
        Type.Array(Type.Integer({ minimum: 1, maximum: 100 }), {
          maxItems: 10,
          description: "Percentages of a window's limit at which to tell; 80 and 100 unless set.",
        }),
      ),
      key_expiry_days: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 90,
          description: "How long before a key expires; 14 unless set, 0: never.",
        }),
      ),
      new_secret: Type.Optional(Type.Boolean({ description: "Give it a new secret; the old one signs nothing more." })),
    }),
    answers: SetNoticesRecord,
    example: {
      ...{ id: "acme", takes: { url: example.url, shares: [80, 100] } },
      answer: { ...example, secret: `whsec_${"x".repeat(43)}` },
    },
    encode: setNoticesJson,
    read: ({ secret, ...rest }: Read & { secret: string | null }) => ({ ...read(rest as Read), secret }),
  }),
  managementOperation({
    ...{ ...common, verb: "removeNotices", method: "post", path: `${path}/remove`, kind: "act", also: [] },
    summary: "Remove the webhook of an organization",
    description: "What waits to be sent is dropped.",
    takes: Type.Object({}),
    answers: NoticesRecord,
    example: { id: "acme", takes: {}, answer: example },
    encode: noticesJson,
    read,
  }),
];
