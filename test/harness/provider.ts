// The certified OpenID Connect issuer oidc-provider, on loopback. Its sign-in page asks nothing: it signs in the
// account that the test set, and consents. Back-channel logout is on.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";
import { freePort } from "./daemon.ts";

export interface TestProvider extends AsyncDisposable {
  issuer: string;
  /** The account that the next sign-in gets. */
  account: string;
  /** The claims of each account. */
  claims: Map<string, Record<string, unknown>>;
  /** Deleted accounts: their refresh tokens are refused. */
  gone: Set<string>;
  /** Whether the provider responds with 503 to every request. */
  away: boolean;
}

interface ProviderOptions {
  redirectUris: string[];
  backchannelLogoutUri: string;
}

export const clientId = "sluice";
export const clientSecret = "a-secret-of-the-client-that-is-long-enough";

export async function startProvider({ redirectUris, backchannelLogoutUri }: ProviderOptions): Promise<TestProvider> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const claims = new Map<string, Record<string, unknown>>();
  const test = { issuer, account: "ann", claims, gone: new Set<string>(), away: false };
  const provider = new Provider(issuer, configurationOf(test, { redirectUris, backchannelLogoutUri }));
  const serve = provider.callback();
  const server = createServer((request, response) => {
    if (test.away) response.writeHead(503).end();
    else if (request.url?.startsWith("/interaction/")) void finish(provider, test.account, request, response);
    else serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  if ((server.address() as AddressInfo).port !== port) throw new Error("another port");
  return Object.assign(test, {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function configurationOf(test: Omit<TestProvider, typeof Symbol.asyncDispose>, options: ProviderOptions) {
  return {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: options.redirectUris,
        post_logout_redirect_uris: options.redirectUris.map((one) => `${new URL(one).origin}/`),
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        backchannel_logout_uri: options.backchannelLogoutUri,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "offline_access", "profile", "email", "groups"],
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    cookies: { keys: ["a key of a test"] },
    findAccount: (_: unknown, id: string) =>
      test.gone.has(id) ? undefined : { accountId: id, claims: () => ({ sub: id, ...test.claims.get(id) }) },
    renderError: (ctx: { type: string; body: string }, out: object) => {
      ctx.type = "text/plain";
      ctx.body = JSON.stringify(out);
    },
  };
}

async function finish(
  provider: Provider,
  accountId: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const details = await provider.interactionDetails(request, response);
  const { prompt, params, session, grantId } = details;
  if (prompt.name === "login") {
    await provider.interactionFinished(request, response, { login: { accountId } });
    return;
  }
  const known = grantId ? await provider.Grant.find(grantId) : undefined;
  const grant = known ?? new provider.Grant({ accountId: session!.accountId, clientId: params.client_id! });
  grant.addOIDCScope(params.scope!);
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}
