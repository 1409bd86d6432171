// Clients that each send the next request as soon as they have a response. Successive requests use the keys in turn.

import { Agent, request } from "node:http";
import type { Key, Running } from "./gateway.ts";

export interface Answer {
  status: number;
  took_ms: number;
}

export interface Load {
  clients: number;
  isStreamed: boolean;
  /** The run ends after this time or after `requests_max` requests, whichever comes first. */
  for_ms: number;
  requests_max: number;
}

/** Clients with one connection each, which is kept for the whole run. */
export class Clients {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4096 });
  readonly #gateway: Pick<Running, "url" | "model">;
  readonly #answered = new Map<string, number>();
  #next = 0;

  constructor(gateway: Pick<Running, "url" | "model">) {
    this.#gateway = gateway;
  }

  /** Runs the load, and returns all responses. */
  async load(keys: readonly Key[], { clients, isStreamed, for_ms, requests_max }: Load): Promise<Answer[]> {
    const answers: Answer[] = [];
    const end_ms = performance.now() + for_ms;
    let begun = 0;
    const client = async () => {
      while (begun < requests_max && performance.now() < end_ms) {
        begun++;
        const { secret } = keys[this.#next++ % keys.length]!;
        const answer = await this.ask(secret, isStreamed);
        answers.push(answer);
        if (answer.status === 200) this.#answered.set(secret, (this.#answered.get(secret) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    return answers;
  }

  /** The number of requests with these keys that got a response with the status 200. */
  answered(keys: readonly Key[]): number {
    return keys.reduce((sum, { secret }) => sum + (this.#answered.get(secret) ?? 0), 0);
  }

  ask(secret: string | null, isStreamed = false): Promise<Answer> {
    const body = JSON.stringify({
      model: this.#gateway.model,
      messages: [{ role: "user", content: "Say the word twenty times." }],
      max_tokens: 20,
      ...(isStreamed ? { stream: true, stream_options: { include_usage: true } } : {}),
    });
    const began_ms = performance.now();
    return new Promise((resolve) => {
      const done = (status: number) => resolve({ status, took_ms: performance.now() - began_ms });
      const sent = request(`${this.#gateway.url}/chat/completions`, {
        agent: this.#agent,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
        },
        timeout: 60_000,
      });
      sent.on("response", (response) => {
        response.resume();
        response.on("end", () => done(response.statusCode ?? 0));
        response.on("error", () => done(0));
      });
      sent.on("timeout", () => sent.destroy(new Error("no answer for a minute")));
      sent.on("error", () => done(0));
      sent.end(body);
    });
  }

  stop(): void {
    this.#agent.destroy();
  }
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
