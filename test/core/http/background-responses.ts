/** Background responses of a service: they are begun, fetched until they have ended, and cancelled. */
import { expect } from "bun:test";
import { model, type Service, says } from "../../harness/engine.ts";
import { requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

export interface Created {
  id: string;
  status: string;
  background: boolean;
  output: { content?: { text: string }[] }[];
}

export const asked = (directives: string, more: object = {}) => ({
  ...{ model, input: says(directives), background: true as const },
  ...more,
});

export const idIn = (text: string) => /"id":"(resp_[0-9a-f]{32})"/.exec(text)![1]!;

/** Reads a stream until `isEnough` is true of the text that has come, and leaves it. */
export async function readUntil(response: Response, isEnough: (text: string) => boolean): Promise<string> {
  let text = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (isEnough(text)) break;
  }
  return text;
}

export function backgroundOf(service: Service) {
  const fetched = async (id: string) => (await (await service.fetch(`/v1/responses/${id}`)).json()) as Created;
  return {
    fetched,

    /** Begins a response; the client of a stream leaves it when it has read the response's id. */
    async begin(directives: string, more: object = {}, headers: Record<string, string> = {}) {
      const response = await service.post("/v1/responses", asked(directives, more), { headers });
      expect(response.status).toBe(200);
      const text = await readUntil(response, (text) => /"id":"resp_\w{32}"/.test(text));
      return { id: idIn(text), request: requestIdOf(response) };
    },

    async cancel(id: string): Promise<Created> {
      return (await (await service.post(`/v1/responses/${id}/cancel`, {})).json()) as Created;
    },

    async ended(id: string): Promise<Created> {
      let now = await fetched(id);
      const isOver = async () => {
        now = await fetched(id);
        return now.status !== "in_progress" && now.status !== "queued";
      };
      await until(isOver, 10_000, "the end of the response");
      return now;
    },
  };
}
