/** GET /v1/service/requests/{id}: what one request of the calling organization used and cost. It names no upstream. */
import { Fault } from "../../inference/fault.ts";
import { encodeFault } from "../../protocol/openai-chat/fault.ts";
import { uuidOf } from "../../store/ids.ts";
import { admitted } from "../admitted.ts";
import type { RequestReceipt } from "../contract/receipt.ts";
import type { Route } from "../door.ts";
import type { House } from "../house.ts";
import { json } from "../json.ts";
import { idIn } from "../path-id.ts";
import { receiptShown, refusedShown } from "../receipt.ts";

const prefix = "/v1/service/requests/";

export function receiptRoute(house: House): Route {
  return {
    path: `${prefix}{id}`,
    methods: {
      async GET(call) {
        const principal = await admitted(house, call, "usage:read");
        const id = idIn(call, prefix);
        const receipt = uuidOf(id, "req_") ? await receiptOf(house, principal.organization.id, id) : null;
        if (receipt) return json(200, receipt);
        throw new Fault(
          "request_not_found",
          "There is no such request in this organization. Only authenticated inference requests have receipts, for 30 days at least.",
          { param: "id" },
        );
      },
    },
    faultBody: encodeFault,
  };
}

async function receiptOf(house: House, organizationId: string, id: string): Promise<RequestReceipt | null> {
  const receipt = await house.ledger.receipt(organizationId, id);
  if (receipt) return receiptShown(receipt);
  const refused = await house.refused.find(id);
  return refused?.organizationId === organizationId ? refusedShown(refused) : null;
}
