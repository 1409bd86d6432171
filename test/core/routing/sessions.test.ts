/**
 * Conversations on replicas, on a virtual clock: 64 conversations of 20 turns on 4 replicas. Each conversation finds
 * the prefix cache that it has filled, no replica gets far more work than the others, and the loss of a replica moves
 * only its own conversations.
 */
import { describe, expect, test } from "bun:test";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { affinityKey, saltOf } from "../../../src/core/routing/affinity.ts";
import type { Route } from "../../../src/core/routing/catalog.ts";
import { type Pool, pool } from "../../../src/core/routing/choose.ts";
import { chanceOf } from "../../faults/chance.ts";
import { saying } from "../../harness/request.ts";

const sessions = 64;
const turns = 20;
const replicas = ["a", "b", "c", "d"].map(
  (name) => ({ upstream: { name: "main", url: `http://${name}/v1` }, model: "m", priority: 0, weight: 1 }) as Route,
);

interface Turn {
  session: number;
  turn: number;
  url: string;
}

interface Course {
  seed: number;
  /** The time between a client's turns, relative to the duration of an answer. */
  thinking: number;
  /** The replica that is lost as soon as any session has reached this turn. */
  lost?: { turn: number; url: string };
}

/** The turns in order, each with the replica that served it. */
function simulated({ seed, thinking, lost }: Course): Turn[] {
  const random = chanceOf(seed).next;
  const known: Pool = pool();
  const asked: Turn[] = [];
  const events: { at_ms: number; run(): void }[] = [];
  let now_ms = 0;
  const later = (wait_ms: number, run: () => void) => void events.push({ at_ms: now_ms + wait_ms, run });
  const next = (session: number, turn: number): void => {
    if (turn === turns) return;
    const visit = { key: () => seed * 1000 + session, tokens: 1_000 + turn * 1_500 * (0.5 + random()) };
    const isLost = lost !== undefined && asked.some((one) => one.turn >= lost.turn);
    const left = replicas.filter(({ upstream }) => !isLost || upstream.url !== lost?.url);
    const route = known.choose(left, visit, random)!;
    known.begun(route, visit, true, now_ms);
    if (!lost) expectBounded(known);
    asked.push({ session, turn, url: route.upstream.url });
    later(1_000 + 4_000 * random(), () => {
      known.ended(route, visit);
      later(5_000 * thinking * random(), () => next(session, turn + 1));
    });
  };
  for (let session = 0; session < sessions; session++) later(10_000 * random(), () => next(session, 0));
  while (events.length > 0) {
    const first = events.reduce((least, event, index) => (event.at_ms < events[least]!.at_ms ? index : least), 0);
    const [event] = events.splice(first, 1);
    now_ms = event!.at_ms;
    event!.run();
  }
  for (const replica of replicas)
    expect(known.of(replica)).toMatchObject({ requests: 0, sessions: expect.any(Number) });
  return asked;
}

/** Checks that no replica has more than 1.25 times its share of the live sessions. */
function expectBounded(known: Pool): void {
  const live = replicas.map((replica) => known.of(replica).sessions);
  const all = live.reduce((sum, one) => sum + one, 0);
  expect(Math.max(...live)).toBeLessThanOrEqual(Math.ceil((1.25 * all) / replicas.length));
}

/** The number of these turns at the replica that served most of them. */
const most = (turns: readonly Turn[]) =>
  Math.max(
    ...Map.groupBy(turns, ({ url }) => url)
      .values()
      .map(({ length }) => length),
  );

/** For each session, the share of its turns at the replica that served most of them. */
function shares(asked: Turn[]): number[] {
  return Array.from({ length: sessions }, (_, session) => {
    const own = asked.filter((one) => one.session === session);
    return most(own) / own.length;
  });
}

const seeds = Array.from({ length: 60 }, (_, index) => index + 1);

describe("64 sessions of 20 turns on 4 replicas", () => {
  for (const thinking of [0, 1, 10]) {
    test(`who think ${thinking} times as long as engines: at home, and evenly`, () => {
      for (const seed of seeds) {
        const asked = simulated({ seed, thinking });
        const own = shares(asked);
        expect(own.reduce((sum, share) => sum + share, 0) / sessions).toBeGreaterThanOrEqual(0.95);
        // With few requests in flight, two or three more on one replica are far beyond its share, so some sessions
        // move.
        if (thinking < 10) expect(Math.min(...own)).toBeGreaterThanOrEqual(0.85);
        expect(most(asked) / ((sessions * turns) / replicas.length)).toBeLessThanOrEqual(1.25);
      }
    });
  }
});

const request = (user: string, more: Partial<InferenceRequest> = {}): InferenceRequest => {
  const { turns, ...asked } = saying(user);
  return {
    ...asked,
    turns: [{ role: "system", parts: [{ kind: "text", text: "You are a coder." }] }, ...turns],
    ...more,
  };
};

test("organizations have salts of their own", () => {
  expect(saltOf("one")).toBe(saltOf("one"));
  expect(saltOf("one")).not.toBe(saltOf("two"));
});

describe("a conversation is known", () => {
  const key = (asked: InferenceRequest, session: string | null = null, organizationId = "o") =>
    affinityKey({ organizationId, session }, asked);

  test("by the client's name for it, then by its cache key, then by its head", () => {
    expect(key(request("one"), "s")).toBe(key(request("two", { cacheKey: "c" }), "s"));
    expect(key(request("one", { cacheKey: "c" }))).toBe(key(request("two", { cacheKey: "c" })));
    expect(key(request("one"))).not.toBe(key(request("two")));
    const { turns: head } = request("one");
    const later = [...head, { role: "assistant" as const, parts: [{ kind: "text" as const, text: "yes" }] }];
    expect(key(request("one", { turns: later }))).toBe(key(request("one")));
    expect(key(request("", { turns: [] }))).toBeNull();
  });

  test("long heads differ where the user's words do", () => {
    const context = "context ".repeat(5_000);
    expect(key(request(`${context} one`))).not.toBe(key(request(`${context} two`)));
    expect(key(request(`one ${context}`))).not.toBe(key(request(`two ${context}`)));
  });

  test("by its organization and model alone", () => {
    expect(key(request("one"), "s", "o")).not.toBe(key(request("one"), "s", "p"));
    expect(key(request("one"), null, "o")).not.toBe(key(request("one"), null, "p"));
    expect(key(request("one"), "s")).not.toBe(key(request("one", { model: "acme/n" }), "s"));
  });
});
