/** The secret of the session in this tab, which a new tab of the same browser may have, too (docs/console.md, Sessions). */
import { keptSecret } from "./kept.ts";
import { question, secretChannel } from "./taking-up.ts";

let current: string | null = keptSecret.get();
const channel = secretChannel();

channel.addEventListener("message", ({ data }: MessageEvent) => {
  if (data === question && current !== null) channel.postMessage({ secret: current });
});

export const secret = () => current;

export function keepSecret(next: string | null): void {
  current = next;
  keptSecret.set(next);
}
