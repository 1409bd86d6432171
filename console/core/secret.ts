/**
 * The secret of the session: a cookie alone opens nothing (docs/console.md). It stays in this tab, and a new tab of the same
 * browser gets it from one that is open.
 */
const stored = "sluice-console";
const answer_ms = 250;

let current: string | null = sessionStorage.getItem(stored);
const channel = new BroadcastChannel(stored);

channel.addEventListener("message", ({ data }: MessageEvent) => {
  if (data === "who?" && current !== null) channel.postMessage({ secret: current });
});

export const secret = () => current;

export function keepSecret(next: string | null): void {
  current = next;
  if (next === null) sessionStorage.removeItem(stored);
  else sessionStorage.setItem(stored, next);
}

/** Asks the other tabs. Null: none has it. */
export function secretOfAnotherTab(): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const listen = ({ data }: MessageEvent) => typeof data?.secret === "string" && resolve(data.secret);
  channel.addEventListener("message", listen);
  channel.postMessage("who?");
  setTimeout(() => resolve(null), answer_ms);
  return promise.finally(() => channel.removeEventListener("message", listen));
}
