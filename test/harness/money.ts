/** Converts between the money in results and the nanos in which tests count. */
import type { Money } from "../../src/core/inference/money.ts";
import { moneyOf, nanosOf as nanosIn } from "../../src/core/inference/money.ts";

export const dollars = (nanos: number | bigint): Money => moneyOf(nanos, "USD");
export const nanosOf = (money: Pick<Money, "amount">): number => Number(nanosIn(money));
/** An amount in nanos as a user types it, in dollars. */
export const typed = (nanos: number): string => dollars(nanos).amount.replace(/[.]?0+$/, "");
