import type { Counts } from "../../../scripts/counts.ts";
export async function engineCounts(): Promise<Counts> { throw new Error("x"); }
