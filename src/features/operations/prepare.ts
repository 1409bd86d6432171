/**
 * Decides whether a request may run whose answer is passed on untranslated (an embedding, a ranking, a completion), and
 * under which conditions. It makes the same checks as core/operations/prepare.ts, in the same order.
 */

import { activePlan, outputTokensAllowed, requireContext } from "../../core/admission/allowance.ts";
import type { Principal } from "../../core/auth/verdict.ts";
import type { JsonBody } from "../../core/body/read.ts";
import { reserve } from "../../core/http/bounds.ts";
import type { Call } from "../../core/http/call.ts";
import type { InferenceRequest, Passed } from "../../core/inference/request.ts";
import type { Dependencies } from "../../core/operations/dependencies.ts";
import { commonParts } from "../../core/operations/prepare.ts";
import { allowedModel, assertCapable } from "../../core/routing/catalog.ts";
import type { RunRequest } from "../../core/usage/record.ts";
import { HeldWire } from "./engine.ts";
import type { Inputs, PassedWire, Passing } from "./passing.ts";

/** The tokens that a model adds around each input, at most and on average. */
const [marks_max, marks] = [4, 2];

export function preparePassed<Wire extends PassedWire>(
  dependencies: Dependencies,
  call: Call,
  { principal, body }: { principal: Principal; body: JsonBody<Wire> },
  passing: Passing<Wire>,
): RunRequest {
  const { operation, kind } = passing;
  const { value: wire, bytes, blank_bytes } = body;
  const catalog = dependencies.catalog();
  const model = allowedModel(catalog, wire.model, principal.key, Date.now(), kind);
  reserve(dependencies, call, bytes);
  const inputs = passing.inputs(wire);
  const held = new HeldWire(wire);
  const request = requestOf(model.id, wire, inputs);
  const codecOf = passing.codecOf(held, model.answer_bytes_max ?? answer_bytes_max);
  assertCapable(model, request, codecOf);
  call.requested({ model: model.id, stream: request.stream });
  const plan = activePlan(catalog.plans, principal.organization);
  const { inputEstimate } = dependencies;
  const { ids, count, largest_bytes, cut, more_bytes = 0 } = inputs;
  const inputBytes = bytes + more_bytes;
  // Token ids are written in digits, from which the ratio of tokens to bytes of text must not be learned. So their
  // bytes count as media.
  const media = ids ? { bytes, tokens: ids.tokens } : { bytes: 0, tokens: 0 };
  const inputTokens = ids?.tokens ?? inputEstimate.tokens(model, request, inputBytes) + marks_max * (count - 1);
  const expected = ids?.tokens ?? inputEstimate.expected(model, media, inputBytes - blank_bytes) + marks * (count - 1);
  const tokensIn = (bytes: number) => Math.min(inputTokens, inputEstimate.tokens(model, request, bytes));
  const uncutTokens = ids?.largest ?? tokensIn(largest_bytes);
  // That inputs are cut counts only for the check against the context. Some engines do not cut, so the hold covers all
  // of each input.
  const largestTokens = cut ? Math.min(uncutTokens, tokensIn(cut.whole_bytes) + cut.rest_tokens) : uncutTokens;
  // An engine that cuts reads no more of an input than the context.
  const readTokens_max = cut ? count * model.contextTokens : Number.POSITIVE_INFINITY;
  requireContext(model, ids ? largestTokens : inputEstimate.unlearned(largestTokens, largest_bytes, media));
  return {
    ...commonParts(dependencies, call, { principal, operation, idPrefix: passing.idPrefix, model: wire.model }),
    request: { ...request, passed: passedOf(inputs, largestTokens, held, passing) },
    codecOf,
    model,
    plan,
    inputTokens,
    // The engine may have read only a part of an input that it is asked to cut, which teaches nothing about all of it.
    media: cut ? { ...media, bytes: inputBytes } : media,
    inputBytes,
    blank_bytes,
    own: body.own,
    inputTokensExpected: Math.min(expected, inputTokens, readTokens_max),
    outputTokensAllowed: outputTokensAllowed(model, largestTokens),
  };
}

/** The largest answer in bytes, unless the model sets another limit. */
const answer_bytes_max = 128 * 1024 * 1024;

function requestOf(model: string, { stream }: PassedWire, { outputTokens_max = 1 }: Inputs): InferenceRequest {
  return {
    model,
    stream: stream === true,
    turns: [],
    tools: [],
    sampling: {},
    stop: [],
    extra: {},
    needs: [],
    outputTokens_max,
  };
}

function passedOf<Wire extends PassedWire>(
  { count: inputs, ids, searches, outputTokens_max }: Inputs,
  largestTokens: number,
  held: HeldWire<Wire>,
  { texts }: Passing<Wire>,
): Passed {
  return {
    inputs,
    makesText: outputTokens_max !== undefined,
    largestTokens,
    ...(ids && { exactTokens: ids.tokens }),
    ...(searches !== undefined && { searches }),
    texts: () => (held.isReleased ? [] : texts(held.wire)),
    release: () => held.release(),
  };
}
