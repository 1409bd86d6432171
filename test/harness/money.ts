/** Amounts of money in answers, in the nanos in which tests count. */
import type { Money } from "../../src/core/inference/money.ts";
import { moneyOf, nanosOf as nanosIn } from "../../src/core/inference/money.ts";

export const dollars = (nanos: number | bigint): Money => moneyOf(nanos, "USD");
export const nanosOf = (money: Pick<Money, "amount">): number => Number(nanosIn(money));
/** An amount as a user types it. */
export const typed = (nanos: number): string => dollars(nanos).amount.replace(/[.]?0+$/, "");
