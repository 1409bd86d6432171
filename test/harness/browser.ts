// A minimal browser for sign-ins: cookies that are shared among ports, redirects, links, and forms that send an Origin.

interface Cookie {
  name: string;
  value: string;
  host: string;
  path: string;
}

export interface Page {
  url: URL;
  status: number;
  headers: Headers;
  text: string;
  /** The URLs of the redirects that led to this page. */
  way: string[];
}

export interface Call {
  method?: string;
  body?: unknown;
  /** The secret of the session, which the page's script would hold. */
  secret?: string;
  origin?: string | null;
  headers?: Record<string, string>;
}

export interface Called {
  status: number;
  code: string | undefined;
  body: Record<string, unknown> | null;
  headers: Headers;
}

export class Browser {
  cookies: Cookie[] = [];

  /** Opens a URL and follows its redirects. `headers` replace the browser's own. */
  visit(url: string | URL, headers: Record<string, string> = {}): Promise<Page> {
    return this.#ask("GET", new URL(url), null, headers, []);
  }

  /** Submits these fields from a page to `action`, with the page's origin. */
  send(
    page: Page,
    action: string,
    fields: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Page> {
    return this.#ask("POST", new URL(action, page.url), fields, { origin: page.url.origin, ...headers }, []);
  }

  /** Submits the page's form with the values that its fields have, and with these fields in addition. */
  submit(
    page: Page,
    action: string,
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<Page> {
    const form = page.text.match(new RegExp(`<form[^>]*action="${RegExp.escape(action)}".*?</form>`, "s"))?.[0];
    if (!form) throw new Error(`no form to ${action} in ${page.text}`);
    const hidden = [...form.matchAll(/<input[^>]*name="([^"]+)"[^>]*value="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value,
    ]);
    return this.send(page, action, { ...Object.fromEntries(hidden), ...fields }, headers);
  }

  /** Follows the first link with this text. */
  click(page: Page, text: string): Promise<Page> {
    const link = page.text.match(new RegExp(`<a [^>]*href="([^"]+)"[^>]*>[^<]*${RegExp.escape(text)}`))?.[1];
    if (!link) throw new Error(`no link '${text}' in ${page.text}`);
    return this.visit(new URL(link.replaceAll("&amp;", "&"), page.url));
  }

  /**
   * Calls a path of the page's own origin as its script does. `origin` replaces the value of the Origin header; with
   * null, the header is left out.
   */
  async call(page: Pick<Page, "url">, path: string, asked: Call = {}): Promise<Called> {
    const { method = "GET", body, secret, origin = page.url.origin, headers = {} } = asked;
    const own = {
      ...(origin === null || method === "GET" ? {} : { origin }),
      ...(secret === undefined ? {} : { "x-sluice-console": secret }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    const text = body === undefined ? undefined : JSON.stringify(body);
    const response = await this.#fetch(method, new URL(path, page.url), { ...own, ...headers }, text);
    const json = (await response.json().catch(() => null)) as Called["body"];
    return {
      status: response.status,
      code: (json?.error as { code?: string })?.code,
      body: json,
      headers: response.headers,
    };
  }

  /**
   * Does what the page's script does after a sign-in: reads the code in its URL, and exchanges it for the session's
   * secret.
   */
  async redeem(page: Page): Promise<string> {
    const code = /^#code=(.+)$/.exec(page.url.hash)?.[1];
    const { body } = await this.call(page, "/session/secret", { method: "POST", body: { code } });
    return body?.secret as string;
  }

  /** Sends a request with the cookies of its URL, and stores the cookies that the response sets. */
  async #fetch(method: string, url: URL, headers: Record<string, string>, body?: string): Promise<Response> {
    const own = this.cookies.filter(({ host, path }) => host === url.hostname && url.pathname.startsWith(path));
    const cookie = own.map(({ name, value }) => `${name}=${value}`).join("; ");
    const sent = { ...(cookie === "" ? {} : { cookie }), ...headers };
    const content = body === undefined ? {} : { body };
    const response = await fetch(url, { method, redirect: "manual", headers: sent, ...content });
    for (const one of response.headers.getSetCookie()) this.#keep(one, url);
    return response;
  }

  cookie(name: string): string | undefined {
    return this.cookies.find((one) => one.name === name)?.value;
  }

  async #ask(
    method: string,
    url: URL,
    fields: Record<string, string> | null,
    headers: Record<string, string>,
    way: string[],
  ): Promise<Page> {
    if (way.length > 20) throw new Error(`too many redirects: ${way.join(" ")}`);
    const own = {
      ...(method === "GET" ? { accept: "text/html" } : {}),
      ...(fields ? { "content-type": "application/x-www-form-urlencoded" } : {}),
    };
    const form = fields ? new URLSearchParams(fields).toString() : undefined;
    const response = await this.#fetch(method, url, { ...own, ...headers }, form);
    const location = response.headers.get("location");
    if (location && response.status >= 300 && response.status < 400) {
      await response.arrayBuffer();
      const { origin: _, ...kept } = headers;
      return this.#ask("GET", new URL(location, url), null, kept, [...way, url.href]);
    }
    return { url, status: response.status, headers: response.headers, text: await response.text(), way };
  }

  #keep(text: string, { hostname: host }: URL): void {
    const [pair = "", ...attributes] = text.split(/; ?/);
    const at = pair.indexOf("=");
    const attribute = (name: string) =>
      attributes.find((one) => one.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1);
    const cookie = { name: pair.slice(0, at), value: pair.slice(at + 1), host, path: attribute("path") ?? "/" };
    this.cookies = this.cookies.filter(
      (one) => one.name !== cookie.name || one.host !== host || one.path !== cookie.path,
    );
    const isOver = attribute("max-age") === "0" || Date.parse(attribute("expires") ?? "") < Date.now();
    if (!isOver) this.cookies.push(cookie);
  }
}
