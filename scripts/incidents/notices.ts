// Checks that the notices of an incident arrived in each channel, each of them once.

import { until } from "../../test/harness/until.ts";
import type { Site } from "./site.ts";

type Of = Pick<Site, "channels">;
/** The number of messages that each channel has received, by the channel's name. */
type Counts = Record<string, number>;

/**
 * How long a notice may take to arrive: it is sent when its condition has lasted for 15 s, and conditions are checked
 * every 10 s.
 */
const arrives_ms = 60_000;

export function counted({ channels }: Of): Counts {
  return Object.fromEntries(Object.entries(channels).map(([form, { got }]) => [form, got.length]));
}

/**
 * Waits for notices with these titles in every channel. `since` has the number of earlier messages per channel. Returns
 * the titles that did not arrive, and the messages that a channel refused.
 */
export async function arrived(site: Of, since: Counts, titles: readonly string[]): Promise<string[]> {
  const missing = () =>
    Object.entries(site.channels).flatMap(([form]) =>
      titles.filter((title) => times(site, since, form, title) === 0).map((title) => `${form} did not get '${title}'`),
    );
  await until(() => missing().length === 0, arrives_ms).catch(() => {});
  const refused = Object.entries(site.channels).flatMap(([form, channel]) =>
    channel.refused.splice(0).map((problem) => `${form} refused a message: ${problem}`),
  );
  return [...missing(), ...refused];
}

/** The titles of notices that a channel got more than once. `since` has the number of earlier messages per channel. */
export function repeated(site: Of, since: Counts, titles: readonly string[]): string[] {
  return Object.keys(site.channels).flatMap((form) =>
    titles
      .filter((title) => times(site, since, form, title) > 1)
      .map((title) => `${form} got '${title}' ${times(site, since, form, title)} times`),
  );
}

function times({ channels }: Of, since: Counts, form: string, title: string): number {
  const { got } = channels[form as keyof typeof channels];
  return got.slice(since[form]).filter((one) => one.title === title).length;
}
