/** Writes a notice as signed JSON, for programs (docs/notices.md, What is sent as JSON). */
import type { DueNotice } from "../store/notice.ts";
import { signatureOf, type WebhookRequest } from "../webhook.ts";

export function asJson(
  { id, kind, organizationId, organization, createdAt, details }: DueNotice,
  { url, secret, now_ms }: { url: string; secret: string; now_ms: number },
): WebhookRequest {
  const body = JSON.stringify({
    id,
    type: kind,
    created_at: createdAt,
    organization_id: organizationId,
    organization,
    data: details,
  });
  const timestamp = String(Math.floor(now_ms / 1000));
  const headers = {
    "content-type": "application/json",
    "user-agent": "sluice",
    "sluice-notice-id": id,
    "sluice-timestamp": timestamp,
    "sluice-signature": signatureOf(secret, timestamp, body),
  };
  return { url, body, headers };
}
