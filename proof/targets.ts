import type { Target } from "./target.ts";
import { anyLlm } from "./targets/any-llm/target.ts";
import { hardcap } from "./targets/hardcap/target.ts";
import { litellm } from "./targets/litellm/target.ts";
import { sluice } from "./targets/sluice/target.ts";

export const targets: readonly Target[] = [sluice, litellm, hardcap, anyLlm];
