import type { Gateway } from "./gateway.ts";
import { busbar } from "./gateways/busbar.ts";
import { hardcap } from "./gateways/hardcap.ts";
import { litellm, litellmRust } from "./gateways/litellm.ts";
import { sluice } from "./gateways/sluice.ts";

export const gateways: readonly Gateway[] = [sluice, busbar, litellm, litellmRust, hardcap];
