// Names the webhook of an organization: its destination for notices as signed JSON, by the name that commands show.

import type { DestinationSettings, NoticeAdministration, NoticeDestination } from "../../src/admin/store/notices.ts";
import type { NoticeForm, NoticeOwner } from "../../src/features/notices/store/notice.ts";

export const webhook = "webhook";

type Settings = Pick<NoticeDestination, "shares" | "keyExpiryDays"> & { url: string; form?: NoticeForm; name?: string };

export function settingsOf({ url, shares, keyExpiryDays, form = "json" }: Settings): DestinationSettings {
  return { form, address: url, host: new URL(url).host, shares, keyExpiryDays };
}

export async function setHook(
  acts: Pick<NoticeAdministration, "setDestination">,
  owner: NoticeOwner,
  settings: Settings,
  { secret = "whsec_test", renews = false }: { secret?: string; renews?: boolean } = {},
  actor = "cli:test",
): Promise<NoticeDestination> {
  const made = { id: `dest_${Bun.randomUUIDv7().replaceAll("-", "")}`, secret, renews };
  const { name = webhook } = settings;
  return (await acts.setDestination(owner, name, () => settingsOf(settings), made, actor)).destination;
}

export const findHook = (acts: Pick<NoticeAdministration, "findDestination">, owner: NoticeOwner) =>
  acts.findDestination(owner, webhook);

export const removeHook = (
  acts: Pick<NoticeAdministration, "removeDestination">,
  owner: NoticeOwner,
  actor = "cli:test",
) => acts.removeDestination(owner, webhook, actor);
