/** What an administrator does with operators: who may administer over HTTP. A new token is returned once. */
import { key_random_bytes, newKey, secretOf } from "../auth/key.ts";
import { idOf } from "../store/ids.ts";
import { type Operator, type Role, roles } from "../store/operators.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { type Paged, type PageInput, paged, pageOf } from "./page.ts";
import * as parse from "./parse.ts";

export interface OperatorVerbs {
  /** `organization`: of an `organization-admin`, and only of one. `expires`: ISO 8601 with a zone, in the future. */
  createOperator(input: {
    name: string;
    role: string;
    organization?: string | null;
    expires?: string | null;
  }): Promise<NewOperator>;
  pageOperators(input: PageInput): Promise<Paged<Operator>>;
  /** `id` is a name or an id, here and below. */
  findOperator(input: { id: string }): Promise<Operator>;
  /** As a key's: without `grace`, the older tokens work until they are revoked. */
  rotateOperator(input: { id: string; grace?: string | null }): Promise<NewOperator>;
  /** Revokes the operator, or with `old` only the tokens that a rotation replaced. Idempotent. */
  revokeOperator(input: { id: string; old?: boolean }): Promise<Operator>;
}

export interface NewOperator {
  operator: Operator;
  /** The token, in plain text: the only time that anybody sees it. Empty: the request was a repeat. */
  secret: string;
}

export function operatorVerbs(context: ManagementContext): OperatorVerbs {
  const { operators, actor, newUuid, now_ms, organizationOf, random } = context;
  const newToken = () => newKey(random(key_random_bytes), "slo_");

  async function operatorOf(given: unknown): Promise<Operator> {
    const id = parse.text(given, "an operator's ID");
    if (id.startsWith("slo_"))
      fail("That is the token itself. Specify the operator's ID instead, which begins with 'op_'.");
    return (await operators.findOperator(id)) ?? noOperator(id);
  }

  async function boundTo(role: Role, organization: unknown): Promise<string | null> {
    if (role === "organization-admin") {
      if (parse.isAbsent(organization)) fail("An organization-admin needs an organization. Specify one.");
      return (await organizationOf(organization)).id;
    }
    if (!parse.isAbsent(organization))
      fail(`Only an organization-admin is bound to an organization, not the role ${role}.`);
    return null;
  }

  return {
    async createOperator(input) {
      const name = parse.operatorName(input.name);
      const role = parse.choice(input.role, roles, "role");
      const expiresAt = parse.isAbsent(input.expires) ? null : parse.futureInstant(input.expires, now_ms());
      const organizationId = await boundTo(role, input.organization);
      const secret = newToken();
      const made = await operators.createOperator({
        ...{ id: idOf(newUuid(), "op_"), name, role, organizationId, expiresAt, actor },
        secret: secretOf(secret),
        repeat: context.repeatOf("createOperator", input),
      });
      if (made === "name_taken") {
        fail(`There is or was an operator '${name}'. Choose another name: the audit log has this one.`, "taken");
      }
      if (made === "reused") return reusedKey();
      if ("repeated" in made) return { operator: await operatorOf(made.repeated), secret: "" };
      return { operator: made, secret };
    },
    async pageOperators(input) {
      return paged(await operators.pageOperators(pageOf(input, "op_")), ({ id }) => id);
    },
    findOperator: (input) => operatorOf(input.id),
    async rotateOperator(input) {
      const grace_ms = parse.isAbsent(input.grace) ? null : parse.duration(input.grace);
      const { id, revokedAt, expiresAt } = await operatorOf(input.id);
      if (revokedAt) fail(cannotRotate(id, "is revoked"), "state");
      if (expiresAt && expiresAt.getTime() <= now_ms()) fail(cannotRotate(id, "has expired"), "state");
      const secret = newToken();
      const graceEndsAt = grace_ms === null ? null : new Date(now_ms() + grace_ms);
      let operator = await operators.rotateOperator({ id, secret: secretOf(secret), graceEndsAt, actor });
      if (operator === "revoked") fail(cannotRotate(id, "is revoked"), "state");
      if (operator && grace_ms === 0) operator = await operators.revokeOperator({ id, old: true, actor });
      return { operator: operator ?? noOperator(id), secret };
    },
    async revokeOperator(input) {
      const { id } = await operatorOf(input.id);
      return (await operators.revokeOperator({ id, old: input.old === true, actor })) ?? noOperator(id);
    },
  };
}

function noOperator(id: string): never {
  return fail(
    `There is no operator '${parse.excerpt(id)}'. To list all operators, run: sluice operator list`,
    "not_found",
  );
}

function cannotRotate(id: string, why: string): string {
  return `The operator ${id} ${why}, and its token cannot be rotated. Create a new one.`;
}
