/** The contract and its rendering, in the contract. */
import Type from "typebox";
import type { Operation } from "../operation.ts";

const document = (operationId: string, path: string, summary: string, description: string, contentType: string) =>
  ({
    operationId,
    method: "get",
    path,
    tag: "Documentation",
    summary,
    description,
    scope: null,
    success: {
      description: summary,
      headers: [],
      content: {
        [contentType]: {
          schema:
            contentType === "application/json"
              ? Type.Object({ openapi: Type.String() }, { additionalProperties: true })
              : Type.String(),
        },
      },
    },
    faults: [],
    otherFaults: false,
    examples: [{ name: operationId, summary, needs: [], request: () => ({ path }), status: 200, contentType }],
  }) satisfies Operation;

export const getContract = document(
  "getContract",
  "/openapi.json",
  "The contract",
  "This document, with the models of the catalog in force. Where prose and the contract disagree, the contract applies.",
  "application/json",
);

export const getDocs = document(
  "getDocs",
  "/docs",
  "The contract, rendered",
  "A page that shows this document and asks no other host for anything.",
  "text/html",
);
