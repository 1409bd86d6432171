/**
 * Authentication of callers that send a token of their identity issuer instead of a key (docs/identity.md, Tokens of an
 * issuer as keys).
 */
import { unauthorized } from "../../core/auth/credential.ts";
import { Fault } from "../../core/inference/fault.ts";
import { idOf } from "../../core/store/ids.ts";
import { verifiedAssertion } from "./assertions.ts";
import { confirmPerson, NoSubject } from "./confirm.ts";
import { type IdentityParts, identityOf, membershipNamed, NotConfigured } from "./identity.ts";
import { IssuerAway, IssuerRefused } from "./issuer-clients.ts";
import type { TokenVerifier, VerifiedToken } from "./known-tokens.ts";
import { judged } from "./rules.ts";

/**
 * Verifies the tokens that callers send. The person and the key that a token stands for are created when a token first
 * names them.
 */
export function callerTokens(parts: IdentityParts): TokenVerifier {
  return {
    settings() {
      const identity = parts.identity();
      return identity?.issuers.some(({ audiences }) => audiences.length > 0) ? identity : null;
    },
    async verify(token) {
      try {
        return await callerOf(parts, token);
      } catch (thrown) {
        if (thrown instanceof IssuerRefused || thrown instanceof NotConfigured || thrown instanceof NoSubject)
          throw refused(thrown);
        throw thrown instanceof IssuerAway ? away(thrown) : thrown;
      }
    },
  };
}

/** Verifies a token, and finds or creates its person and key. If no rule matches, nothing is stored. */
async function callerOf(parts: IdentityParts, token: string): Promise<VerifiedToken> {
  const { people, newUuid } = parts;
  const identity = identityOf(parts);
  const { issuer, claims, issuedAt, ends_ms } = await verifiedAssertion(parts, token);
  const rule = judged(identity, issuer, claims).calling;
  if (!rule) throw new IssuerRefused("no rule admits the token");
  const { id, memberships } = await confirmPerson({ people, identity, newUuid }, issuer, claims, {
    at: issuedAt,
  });
  const { organization } = rule;
  const found = membershipNamed(memberships, organization);
  if (!found) throw new IssuerRefused(`there is no organization ${organization}`);
  const key = await people.tokenKey({
    id: idOf(newUuid(), "key_"),
    personId: id,
    organization: found.organizationId,
  });
  if (!key) throw new IssuerRefused(`the organization ${organization} is gone, or the membership in it`);
  return { keyHash: key.secretHash, issuedAt_ms: issuedAt.getTime(), lasts_ms: ends_ms - parts.now_ms() };
}

/** The fault that refuses a token. Its message is the same for all causes; the cause appears only in the log. */
function refused(cause: Error): Fault {
  const { code, message, details } = unauthorized(
    "invalid_api_key",
    "This identity token is not valid here: it has expired, is not for this service, or no rule admits it. Get a new one, or ask your administrator.",
  );
  return new Fault(code, message, { ...details, cause });
}

function away(cause: Error): Fault {
  return new Fault(
    "storage_unavailable",
    "The service cannot check identity tokens at the moment, because their issuer does not answer. Please try again.",
    { retryAfterSeconds: 2, cause },
  );
}
