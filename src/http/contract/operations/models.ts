/** GET /v1/models and /v1/models/{id} in the contract. */
import Type from "typebox";
import { credentialFaults } from "../faults.ts";
import type { Operation, Parameter } from "../operation.ts";
import { MessagesModel, MessagesModelList, ModelDetails, ModelList } from "../shapes.ts";

const json = "application/json";
const messagesWorld: Parameter = {
  name: "anthropic-version",
  in: "header",
  required: false,
  description:
    "When it is present, whatever its value, the answer has the shape that Messages clients expect, and so has an error.",
  schema: Type.String(),
};
const messagesHeaders = { "anthropic-version": "2023-06-01" };

export const listModels: Operation = {
  operationId: "listModels",
  method: "get",
  path: "/v1/models",
  tag: "Models",
  summary: "List the models",
  description: "Every active model.",
  scope: "models:read",
  parameters: [messagesWorld],
  success: {
    description: "The models.",
    headers: [],
    content: {
      [json]: {
        schema: Type.Union([ModelList, MessagesModelList]),
        example: {
          object: "list",
          data: [{ id: "vendor/model", object: "model", created: 1790000000, owned_by: "vendor" }],
        },
      },
    },
  },
  faults: [...credentialFaults],
  otherFaults: true,
  faultShape: "client",
  examples: [
    {
      name: "list",
      summary: "All models",
      needs: [],
      request: () => ({ path: "/v1/models" }),
      status: 200,
      contentType: json,
    },
    {
      name: "list_for_messages_clients",
      summary: "All models, in the Messages shape",
      needs: [],
      request: () => ({ path: "/v1/models", headers: messagesHeaders }),
      status: 200,
      contentType: json,
    },
  ],
};

export const retrieveModel: Operation = {
  operationId: "retrieveModel",
  method: "get",
  path: "/v1/models/{id}",
  tag: "Models",
  summary: "Retrieve a model",
  description: "One model, with its limits, capabilities and unit prices.",
  scope: "models:read",
  parameters: [
    {
      name: "id",
      in: "path",
      required: true,
      description: "The model's id. Its slash may be sent as it is, or encoded as `%2F`.",
      schema: Type.String({ minLength: 1 }),
      example: (modelId) => modelId,
    },
    messagesWorld,
  ],
  success: {
    description: "The model.",
    headers: [],
    content: { [json]: { schema: Type.Union([ModelDetails, MessagesModel]) } },
  },
  faults: [...credentialFaults, "model_not_found"],
  otherFaults: true,
  faultShape: "client",
  examples: [
    {
      name: "encoded",
      summary: "The id with its slash encoded",
      needs: [],
      request: (id) => ({ path: `/v1/models/${encodeURIComponent(id)}` }),
      status: 200,
      contentType: json,
    },
    {
      name: "raw",
      summary: "The id as it is",
      needs: [],
      request: (id) => ({ path: `/v1/models/${id}` }),
      status: 200,
      contentType: json,
    },
    {
      name: "for_messages_clients",
      summary: "In the Messages shape",
      needs: [],
      request: (id) => ({ path: `/v1/models/${encodeURIComponent(id)}`, headers: messagesHeaders }),
      status: 200,
      contentType: json,
    },
  ],
};
