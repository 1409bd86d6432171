/**
 * `sluice limit request`: sends a limit request with the user's own sign-in at a server. No other command calls
 * management in this way (src/admin/people/limit-requests.ts).
 */
import { client } from "../management/client.ts";
import type { Management } from "../management/verbs.ts";
import { limitRequestsPath } from "../people/limit-requests.ts";
import { jsonOf } from "./calling.ts";
import { refusalOf } from "./remote.ts";
import type { Services } from "./services.ts";
import { accessTo } from "./sign-in/access.ts";
import { request } from "./sign-in/service.ts";

export async function withSignIn<T>(services: Services, work: (manage: Management) => Promise<T>): Promise<T> {
  const { url, secret } = await accessTo(services, undefined);
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  return work(
    client(async (_, json) => {
      const response = await request(url, limitRequestsPath, { method: "POST", headers, body: JSON.stringify(json) });
      const body = await jsonOf(response);
      if (!response.ok) throw refusalOf({ url, token: secret }, response.status, body);
      return body;
    }),
  );
}
