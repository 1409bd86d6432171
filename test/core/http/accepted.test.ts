/**
 * The published schema of a request and the service agree. Bodies that the schema refuses are refused; bodies that it
 * accepts and the service refuses with 400 are of a kind that accepted-kinds.ts lists with the reason. Bodies are
 * generated from the schema as published, and validated by Ajv, an independent validator.
 */
import { afterAll, describe, expect, test } from "bun:test";
import Ajv from "ajv/dist/2020";
import fc from "fast-check";
import { defaultModels } from "../../../src/config/models.ts";
import { refuseImages } from "../../../src/core/inference/media.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { responsesAdapter } from "../../../src/core/operations/responses.ts";
import { nothingStored } from "../../../src/core/operations/stored.ts";
import { anthropicMessagesCaller } from "../../../src/core/protocol/anthropic-messages/codec.ts";
import {
  validateCountTokens,
  validateMessagesRequest,
} from "../../../src/core/protocol/anthropic-messages/validate.ts";
import { openaiChatCaller } from "../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../src/core/protocol/openai-chat/validate.ts";
import { openaiResponsesCaller } from "../../../src/core/protocol/openai-responses/codec.ts";
import type { ResponsesRequest } from "../../../src/core/protocol/openai-responses/contract.ts";
import { notFound, referencesOf, refersTo } from "../../../src/core/protocol/openai-responses/references.ts";
import {
  validateCompactRequest,
  validateInputTokens,
  validateResponsesRequest,
} from "../../../src/core/protocol/openai-responses/validate.ts";
import { assertCapable, type Route } from "../../../src/core/routing/catalog.ts";
import { openapiDocument } from "../../../src/features/openapi/document.ts";
import { openaiCompactCaller } from "../../../src/features/responses/compact.ts";
import { operations } from "../../../src/node/operations.ts";
import { faultOf } from "../../harness/faults.ts";
import { type Schema, valuesOf } from "../../harness/schema-values.ts";
import { startSluice } from "../../harness/sluice.ts";
import { kinds } from "./accepted-kinds.ts";
import { type Change, change, changed } from "./changed-bodies.ts";

const models = defaultModels();
const { schemas } = openapiDocument(operations, models, "1.0.0").components as unknown as {
  schemas: Record<string, Schema>;
};
const validator = new Ajv({ strict: false, keywords: ["discriminator"] });
validator.addSchema({ $id: "contract", components: { schemas } });

/** Ids and names that several fields of a body share. */
const words = ["a", "b"];

interface Judged {
  path: string;
  /** Prepares a body as `src/core/operations/infer.ts` does before an engine is asked; throws the Fault of a refusal. */
  take(body: unknown): void;
}
const judged: Record<string, Judged> = {
  ChatCompletionRequest: {
    path: "/v1/chat/completions",
    take: (body) => capable(openaiChatCaller.request.decode(validateChatRequest(body, []))),
  },
  MessagesRequest: {
    path: "/v1/messages",
    take: (body) => capable(anthropicMessagesCaller().request.decode(validateMessagesRequest(body))),
  },
  CountTokensRequest: { path: "/v1/messages/count_tokens", take: validateCountTokens },
  ResponsesRequest: {
    path: "/v1/responses",
    take: (body) => {
      const wire = unstored(validateResponsesRequest(body));
      inBackground.isAsked(wire);
      capable(openaiResponsesCaller.request.decode(wire));
    },
  },
  ResponsesCompactRequest: {
    path: "/v1/responses/compact",
    take: (body) => capable(openaiCompactCaller.request.decode(unstored(validateCompactRequest(body)))),
  },
  ResponsesInputTokensRequest: {
    path: "/v1/responses/input_tokens",
    take: (body) => void openaiResponsesCaller.request.decode(unstored(validateInputTokens(body))),
  },
};

const inBackground = responsesAdapter({ stored: { ...nothingStored, isOn: () => true } }).background!;

/** Refuses references, since nothing is stored that they could refer to. */
function unstored(wire: ResponsesRequest): ResponsesRequest {
  if (refersTo(referencesOf(wire))) throw notFound("input");
  return wire;
}

/**
 * Checks the request against its model on a chat engine, as in the default catalog, and against the rules for images.
 */
function capable(request: InferenceRequest): void {
  refuseImages(request, { deny_private: false, denied_hosts: [] });
  const model = models.find(({ id }) => id === request.model)!;
  assertCapable({ ...model, routes: [{ upstream: { protocol: "openai-chat" } } as Route] }, request);
}

describe.each(Object.entries(judged))("%s", (name, { path, take }) => {
  const accepts = validator.compile({ $ref: `contract#/components/schemas/${name}` });
  const bodies = valuesOf(schemas[name]!, schemas, words);
  const refusal = (body: unknown) => faultOf(() => take(body));
  const isListed = (code: string, message: string) =>
    kinds[name]!.some((kind) => kind.code === code && kind.says.test(message));

  test("what the schema refuses is refused, and what it accepts is served or of a listed kind", () => {
    fc.assert(
      fc.property(bodies, (body) => {
        const fault = refusal(body);
        if (!accepts(body)) expect(fault).not.toBeNull();
        else if (fault && !isListed(fault.code, fault.message)) throw fault;
      }),
      { numRuns: 1000 },
    );
  });

  test.each(kinds[name]!.map((kind) => [String(kind.says), kind] as const))("accepted, and refused: %s", (_, kind) => {
    expect(accepts(kind.example)).toBe(true);
    const fault = refusal(kind.example)!;
    expect([fault?.code, kind.says.test(fault?.message)]).toEqual([kind.code, true]);
  });

  test("the running service does so too", async () => {
    const accepted = bodies.filter((body) => accepts(body));
    const sample = fc.sample(accepted, 40);
    const examples: unknown[] = kinds[name]!.map(({ example }) => example);
    const unlisted = await Promise.all(
      [...sample, ...examples].map(async (body) => {
        const response = await service.post(path, body);
        const text = await response.text();
        if (response.status === 200) return examples.includes(body) ? [{ body, status: 200 }] : [];
        const { error } = JSON.parse(text);
        const code = error.code ?? error.details?.error_code;
        // Errors of Messages begin with the path. If the path is the sentence's subject, the patterns in
        // accepted-kinds.ts have it in quotes.
        const message = error.message.replace(/^([\w.[\]]+): (must|requires)/, "'$1' $2").replace(/^[\w.[\]]+: /, "");
        return response.status === 400 && isListed(code, message) ? [] : [{ body, status: response.status, error }];
      }),
    );
    expect(unlisted.flat().map((x) => JSON.stringify(x))).toEqual([]);
  }, 60_000);

  test("a body with anything in it changed is served or refused, and never a 5xx", async () => {
    const changes = fc.array(change, { minLength: 1, maxLength: 3 });
    const asked = async (body: unknown, changes: Change[]) => {
      const text = changes.reduce(changed, JSON.stringify(body));
      const headers = { "content-type": "application/json" };
      const response = await service.fetch(path, { method: "POST", headers, body: text });
      expect([200, 400, 404]).toContain(response.status);
      await response.text();
    };
    await fc.assert(fc.asyncProperty(bodies, changes, asked), { numRuns: 130 });
  }, 120_000);
});

const service = await startSluice();
afterAll(() => service.stop(), 60_000);
