/**
 * Authenticates operators: `Authorization: Bearer slo_…`, looked up for each request, because operators are few and a
 * revocation must take effect immediately. A text that does not have the form of a token is refused without a look-up;
 * look-ups of unknown tokens are limited as for keys (unknown-credentials.ts).
 */
import { type HeaderSource, hashKey, isKey, isOperatorToken, unauthorized } from "../../core/auth/credential.ts";
import { SlowRefusal, type UnknownCredentialLimits, unknownCredentials } from "../../core/auth/unknown-credentials.ts";
import { Fault } from "../../core/inference/fault.ts";
import { within } from "../../core/time/cancellation.ts";
import type { FoundOperator, Operator, Operators } from "./store/operators.ts";

const lookup_ms = 3000;
/**
 * The number of valid tokens that are remembered, so that their look-ups don't wait behind the look-ups of unknown
 * tokens.
 */
const known_max = 1000;

/**
 * Makes the function that returns the operator who made a request. That function throws Fault: 401, 429, or 503
 * `storage_unavailable` or `overloaded`. `now_ms`: a monotonic clock.
 */
export function operatorAuthentication(options: {
  operators: Operators;
  now_ms: () => number;
  limits: UnknownCredentialLimits;
}) {
  const unknown = unknownCredentials(options.limits, options.now_ms);
  const known = new Set<string>();

  async function found(hash: Uint8Array, address: string): Promise<FoundOperator | null> {
    const place = known.has(hash.toHex()) ? null : await unknown.enter(address);
    let isFound = false;
    try {
      const one = await within(options.operators.operatorOf(hash, address), lookup_ms, "the list of operators");
      isFound = one !== null;
      if (known.size >= known_max) known.clear();
      if (isFound) known.add(hash.toHex());
      return one;
    } finally {
      place?.leave(isFound);
    }
  }

  return async (headers: HeaderSource, address: string): Promise<Operator> => {
    try {
      const token = tokenOf(headers.get("authorization"));
      return validOperator(await available(found(hashKey(token), address)));
    } catch (thrown) {
      throw thrown instanceof Fault && thrown.status === 401 ? unknown.failed(address, thrown) : thrown;
    }
  };
}

/**
 * Looks up the operator of a session again, by the hash of the token with which the session began. Throws as
 * the function of `operatorAuthentication` does. After a rotation, the old token still works for programs until its
 * grace ends, but sessions that began with it end immediately.
 */
export async function operatorNow(operators: Operators, tokenHash: Uint8Array, address: string): Promise<Operator> {
  const looked = within(operators.operatorOf(tokenHash, address), lookup_ms, "the list of operators");
  const found = await available(looked);
  if (found?.secret.expiresAt) throw rotated();
  return validOperator(found);
}

function tokenOf(authorization: string | null): string {
  const words = (authorization ?? "").trim();
  if (words === "") {
    throw unauthorized(
      "missing_operator_token",
      "This request has no operator token. Send it as 'Authorization: Bearer <TOKEN>'.",
    );
  }
  const token = /^bearer[ \t]+(\S{1,100})$/i.exec(words)?.[1] ?? "";
  if (isOperatorToken(token)) return token;
  throw invalid(
    isKey(token)
      ? "That is an API key, which administers nothing. Send an operator token, which begins with 'slo_'."
      : "The operator token is not valid. A token begins with 'slo_'. Check that you copied all of it.",
  );
}

function validOperator(found: FoundOperator | null): Operator {
  if (!found) throw invalid("This operator token does not exist. Check that it belongs to this service.");
  const { operator, secret, readAt } = found;
  const over = (deadline: Date | null) => deadline !== null && readAt.getTime() >= deadline.getTime();
  if (operator.revokedAt) throw invalid("This operator was revoked. Ask an administrator for a new token.");
  if (secret.revokedAt || over(secret.expiresAt)) throw rotated();
  if (over(operator.expiresAt)) throw invalid("This operator has expired. Ask an administrator for a new token.");
  return operator;
}

async function available<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    if (cause instanceof SlowRefusal) throw cause;
    throw new Fault("storage_unavailable", "The service cannot check operators at the moment. Please try again.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
}

const rotated = () => invalid("This operator token was rotated. Use the new one.");
const invalid = (message: string) => unauthorized("invalid_operator_token", message);
