import type { Target } from "./target.ts";
import { anyLlm } from "./targets/any-llm/target.ts";
import { hardcap } from "./targets/hardcap/target.ts";
import { sluice } from "./targets/sluice/target.ts";

export const targets: readonly Target[] = [sluice, hardcap, anyLlm];
