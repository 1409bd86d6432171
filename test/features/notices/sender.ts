// Starts a node's sender of notices, and receivers of notices, for tests. Both are stopped after the test.
import { notices } from "../../../src/features/notices/sending.ts";

type Ending = (() => unknown)[];
type Parts = Parameters<typeof notices>[0];

/**
 * Looks for notices and sends them, every 20 ms. The result's `given` records errors, and the problems of notices that
 * were given up.
 */
export function startSender(ending: Ending, parts: Pick<Parts, "queue"> & Partial<Parts>) {
  const given: string[] = [];
  const failed = (cause: unknown) => given.push(String(cause));
  const sender = notices({
    conditions: () => [],
    allowsPrivate: () => true,
    consoleUrl: () => "https://console.example",
    mailServer: () => null,
    mailFailed: failed,
    now_ms: Date.now,
    failed,
    givenUp: ({ destination }, problem) => given.push(`${destination}: ${problem}`),
    look_ms: 20,
    send_ms: 20,
    ...parts,
  });
  ending.push(() => sender.stop());
  return { ...sender, given };
}

interface Got {
  body: string;
  headers: Headers;
  notice: { id: string; type: string; organization: string; data: Record<string, unknown> };
}

/** A receiver of signed JSON. It responds with the result of `answer`, which gets the number of earlier notices. */
export function startReceiver(
  ending: Ending,
  answer: (before: number) => Response | Promise<Response> = () => new Response(),
) {
  const got: Got[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = await request.text();
      got.push({ body, headers: request.headers, notice: JSON.parse(body) });
      return answer(got.length - 1);
    },
  });
  ending.push(() => server.stop(true));
  return { got, url: `http://127.0.0.1:${server.port}/hook` };
}
