/**
 * The tables of docs/protocols.md compared with the code: every row is tried with the three kinds of engine, or of
 * client. The capabilities that a request requires of a model are in inference/needs.ts; the page's table of
 * capabilities must match that file, and both must match the codecs.
 */

import { describe, expect, test } from "bun:test";
import { capabilityOf } from "../../../src/core/inference/needs.ts";
import { type Capability, type InferenceRequest, withoutLostHints } from "../../../src/core/inference/request.ts";
import { upstreams } from "./codecs.ts";
import { type Answer, chatAnswers, messagesAnswers, responsesAnswers } from "./losses/answers.ts";
import { chatProbes } from "./losses/chat-client.ts";
import { messagesProbes } from "./losses/messages-client.ts";
import { hintProbes, needProbes } from "./losses/needs.ts";
import { judge, type Probe, table, verdictsIn, verdictTable } from "./losses/probe.ts";
import { responsesProbes } from "./losses/responses-client.ts";
import { ask, decoders, encoders, identity } from "./losses/sides.ts";
import { type ClientName, clientNames, type EngineName, engineNames } from "./pairs/wires.ts";
import { folded } from "./reading.ts";

describe.each([
  ["Requests of Messages clients", "messages", messagesProbes],
  ["Requests of chat clients", "chat", chatProbes],
  ["Requests of Responses clients", "responses", responsesProbes],
] as const)("%s", (heading, client, probes) => {
  const rows = verdictTable(heading);
  test("each row has its trial, and each trial its row", () =>
    expect([...rows.keys()].sort()).toEqual(Object.keys(probes).sort()));
  for (const [what, probe] of Object.entries(probes as Record<string, Probe>))
    test(what, () => {
      for (const [body, ...seen] of probe) {
        const verdicts = engineNames.map((engine) =>
          judge(() => upstreams[engine].request.encode(decoders[client](body), ask), seen, engine),
        );
        expect(verdicts).toEqual(verdictsIn(rows.get(what)!, engineNames));
      }
    });
});

describe.each([
  ["Answers of chat engines", chatAnswers, upstreams.chat],
  ["Answers of Messages engines", messagesAnswers, upstreams.messages],
  ["Answers of Responses engines", responsesAnswers, upstreams.responses],
] as const)("%s", (heading, answers, upstream) => {
  const rows = verdictTable(heading);
  test("each row has its trial, and each trial its row", () =>
    expect([...rows.keys()].sort()).toEqual(Object.keys(answers).sort()));
  for (const [what, [reply, ...seen]] of Object.entries(answers as Record<string, Answer>))
    test(what, () => {
      const answer = folded(upstream.response.decode(reply, identity));
      const verdicts = clientNames.map((client) => judge(() => encoders[client](answer), seen, client));
      expect(verdicts).toEqual(verdictsIn(rows.get(what)!, clientNames));
    });
});

/** The engine of the client's own protocol, or a chat engine if no engine speaks it. */
const ownEngine = (client: ClientName): EngineName => engineNames.find((engine) => engine === client) ?? "chat";

describe("What requires a capability", () => {
  const rows = table("What requires a capability");
  const ticked = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);

  test("the table is that of the code", () => {
    expect([...rows].map(([use, cells]) => [use, ticked(cells[clientNames.length]!)[0]])).toEqual(
      Object.entries(capabilityOf),
    );
    expect(Object.keys(needProbes)).toEqual(Object.keys(capabilityOf));
  });

  test.each(Object.entries(needProbes))("%s", (use, probes) => {
    for (const [at, column] of clientNames.entries()) {
      const fields = ticked(rows.get(use)![at]!);
      expect(Object.keys(probes[column] ?? {})).toEqual(fields);
      for (const [body, param] of Object.values(probes[column] ?? {})) {
        const capability: Capability = capabilityOf[use as keyof typeof capabilityOf];
        expect(decoders[column](body).needs).toEqual([{ capability, param }]);
      }
    }
  });

  test("what merely hints at one asks for nothing, and is not told to a model without it", () => {
    const hints = table("Hints, which require no capability");
    expect([...hints.keys()]).toEqual(Object.keys(hintProbes));
    for (const [hint, { capability, bodies }] of Object.entries(hintProbes)) {
      expect(ticked(hints.get(hint)![3]!)).toEqual([capability]);
      for (const [at, column] of clientNames.entries()) {
        expect(Object.keys(bodies[column] ?? {})).toEqual(ticked(hints.get(hint)![at]!));
        for (const [body, plain] of Object.values(bodies[column] ?? {})) {
          const request = decoders[column](body);
          expect(request.needs.map((need) => need.capability)).not.toContain(capability);
          const told = (model: Capability[], asked: InferenceRequest) =>
            upstreams[ownEngine(column)].request.encode(withoutLostHints(asked, { capabilities: new Set(model) }), ask);
          expect(told([], request)).toEqual(told([], decoders[column](plain)));
          expect(told([capability], request)).not.toEqual(told([capability], decoders[column](plain)));
        }
      }
    }
  });
});
