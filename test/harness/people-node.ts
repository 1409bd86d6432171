// A node with sign-ins and a console, whose issuer is oidc-provider. Tests of sign-ins start it.
import { freePort } from "./daemon.ts";
import { clientId, clientSecret, startProvider, type TestProvider } from "./provider.ts";
import { type Sluice, type SluiceOptions, startSluice } from "./sluice.ts";

export interface PeopleNode extends AsyncDisposable {
  sluice: Sluice;
  provider: TestProvider;
  serviceUrl: string;
  consoleUrl: string;
}

export const secretKey = Buffer.alloc(32, 7).toString("base64");

interface Options extends Omit<SluiceOptions, "config"> {
  /** Additional lines of `identity`, after `rules`. */
  more?: string;
  issuerLines?: string[];
}

interface ConfigOptions {
  provider: Pick<TestProvider, "issuer">;
  serviceUrl: string;
  consoleUrl: string;
  organization: string;
  more?: string;
  issuerLines?: string[];
}

/**
 * The text of sluice.yaml, in which members of the group `platform` administer the service, those of `research` are
 * members of the organization, and those of `leads` administer the organization.
 */
export function peopleConfig(options: ConfigOptions): string {
  const { provider, serviceUrl, consoleUrl, organization, more = "", issuerLines = [] } = options;
  return `
identity:
  service_url: ${serviceUrl}
  console_url: ${consoleUrl}
  issuers:
    - issuer: ${provider.issuer}
      client_id: ${clientId}
      client_secret: ${clientSecret}
      scopes: [openid, profile, email, groups, offline_access]
      parameters: { prompt: consent }
${issuerLines.map((line) => `      ${line}\n`).join("")}
  rules:
    - { claim: groups, has: platform, role: admin }
    - { claim: groups, has: research, organization: ${organization}, role: member }
    - { claim: groups, has: leads, organization: ${organization}, role: organization-admin }
${more}`;
}

export async function startPeopleNode({ more = "", issuerLines = [], ...options }: Options = {}): Promise<PeopleNode> {
  const [port, consolePort] = [await freePort(), await freePort()];
  const [serviceUrl, consoleUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${consolePort}`];
  const provider = await startProvider({
    redirectUris: [serviceUrl, consoleUrl].map((origin) => `${origin}/oauth/callback`),
    backchannelLogoutUri: `${consoleUrl}/oauth/backchannel-logout`,
  });
  const config = peopleConfig({ provider, serviceUrl, consoleUrl, organization: "test", more, issuerLines });
  const sluice = await startSluice({
    ...options,
    config,
    env: {
      PORT: String(port),
      SLUICE_CONSOLE_PORT: String(consolePort),
      SLUICE_SECRET_KEY: secretKey,
      ...options.env,
    },
  });
  return {
    sluice,
    provider,
    serviceUrl,
    consoleUrl,
    async [Symbol.asyncDispose]() {
      await sluice.stop();
      await provider[Symbol.asyncDispose]();
    },
  };
}
