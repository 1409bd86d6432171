/** The administration of OPERATORS. Implemented by `postgres`. */
import type { Actor, NewSecret } from "../../core/store/directory.ts";
import type { Operator, Operators } from "../../features/identity/store/operators.ts";
import type { Revocation, Rotation } from "./credential.ts";
import type { Page, PageOf, Repeat, Repeated } from "./page.ts";

export interface OperatorAdministration extends Operators {
  createOperator(
    input: Pick<Operator, "id" | "name" | "role" | "organizationId" | "expiresAt"> & {
      secret: NewSecret;
      actor: Actor;
      repeat?: Repeat | undefined;
    },
  ): Promise<Operator | "name_taken" | Repeated>;
  /** Returns a page of operators in the order of their creation. */
  pageOperators(page: Page): Promise<PageOf<Operator>>;
  findOperator(nameOrId: string): Promise<Operator | null>;
  rotateOperator(rotation: Rotation): Promise<Operator | "revoked" | null>;
  /**
   * Revokes an operator. `last_admin`: nothing was changed, because nobody could have administered the service
   * afterwards.
   */
  revokeOperator(revocation: Revocation): Promise<Operator | "last_admin" | null>;
}
