/**
 * THE SEAM OF STORED RESPONSES: the interface to a feature that stores responses, so that later requests can continue
 * and name them.
 */
import type { Principal } from "../auth/verdict.ts";
import type { ResponseObject, ResponsesRequest } from "../protocol/openai-responses/contract.ts";
import {
  type Found,
  type References,
  referencesOf,
  refersTo,
  withResolved,
} from "../protocol/openai-responses/references.ts";
import type { Maker } from "../store/maker.ts";

export interface StoredResponses {
  isOn(): boolean;
  /**
   * The request with stored items in place of the references to them. Throws `previous_response_not_found`,
   * `context_length_exceeded` or 503.
   */
  resolve(request: ResponsesRequest, caller: Principal): Promise<Resolved>;
  /** The stored items to which the references refer, and their size. Throws as `resolve` does. */
  find(references: References, caller: Principal): Promise<{ found: Found; bytes: number }>;
  /** Returns a function that stores the answer, and never throws; null if it is not to be stored. */
  saver(request: ResponsesRequest, maker: Maker): ((answer: ResponseObject) => Promise<void>) | null;
}

export interface Resolved {
  wire: ResponsesRequest;
  /** The size of the stored items. */
  bytes: number;
}

/** Stores nothing, so that every reference to a stored response or item is refused as not found. */
export const nothingStored: StoredResponses = {
  isOn: () => false,
  async resolve(request) {
    const wire = { ...request, store: false };
    return { wire: refersTo(referencesOf(wire)) ? withResolved(wire, nothingFound()) : wire, bytes: 0 };
  },
  find: async () => ({ found: nothingFound(), bytes: 0 }),
  saver: () => null,
};

export function nothingFound(): Found {
  return { history: null, items: new Map() };
}
