/**
 * The reason why a request was refused: the message that its client got, and the limit that it met, as of that time.
 */
import Type from "typebox";
import type { LimitMet } from "../../core/inference/fault.ts";
import { type Currency, grouped, inWords, moneyOf } from "../../core/inference/money.ts";
import { Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { RefusedRequest } from "../../core/store/refused.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import { instant, limitNames } from "../store/shapes.ts";
import type { Facts } from "./command.ts";

const amount = () => Type.Union([Money, Type.Integer({ minimum: 0 })]);

export const Refusal = Type.Object(
  {
    message: Type.String({ description: "What the client read, without what it quotes of the request's content." }),
    limit: nullable(
      Type.Object(
        {
          name: oneOf([...limitNames, "extra"], { description: "`extra`: the extra usage of the month." }),
          value: amount(),
          used: nullable(amount()),
          held: nullable(amount()),
          needed: amount(),
          reset_at: nullable(instant("When the window ends. Null: no reset makes room.")),
        },
        {
          description:
            "The limit that the request met, as it was then; null: it was none. Windows are money, the others requests or tokens. `held`: by running requests, beside what is used. `used` is null if the request alone is above the limit.",
        },
      ),
    ),
  },
  { $id: "Refusal" },
);
type Refusal = Value<typeof Refusal>;
type Limit = NonNullable<Refusal["limit"]>;

export function refusalShown({ message, limit }: RefusedRequest, currency: Currency) {
  return { message, limit: limit ? limitShown(limit, currency) : null };
}

function limitShown({ name, limit, used, held, needed, resetAt }: LimitMet, currency: Currency) {
  const isMoney = !/_per_minute$|^concurrent_/.test(name);
  const written = (value: number) => (isMoney ? moneyOf(value, currency) : value);
  return {
    name,
    value: written(limit),
    used: used === null ? null : written(used),
    held: held === undefined ? null : written(held),
    needed: written(needed),
    reset_at: resetAt?.toISOString() ?? null,
  };
}

export function refusalFacts({ message, limit }: Refusal, whose: string | null): Facts {
  return [
    ["message", message],
    ["limit", limit && limitSaid(limit, whose)],
  ];
}

/**
 * The limit in words: `week of the team, $10.00: $9.90 used, $0.05 held; the request needed $0.30; resets 2026-11-22
 * 00:00 UTC`
 */
function limitSaid({ name, value, used, held, needed, resetAt }: Limit, whose: string | null): string {
  const inUse = [used !== null && `${said(used)} used`, held !== null && `${said(held)} held`].filter(Boolean);
  return [
    `${name.replaceAll("_", " ")} of the ${whose}, ${said(value)}${inUse.length > 0 ? `: ${inUse.join(", ")}` : ""}`,
    `the request needed ${said(needed)}`,
    ...(resetAt ? [`resets ${instantWritten(resetAt)}`] : []),
  ].join("; ");
}

const said = (value: Limit["value"]) => (typeof value === "number" ? grouped(value) : inWords(value));
