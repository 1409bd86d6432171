// Measures how much a browser loads of a gateway's console before a user has signed in. Sizes are those after gzip.
import { gzipSync } from "node:zlib";
import { launchBrowser } from "../../admin/console/chromium.ts";

export interface FirstLoad {
  requests: number;
  gzip_bytes: number;
  /** The files that the page requested from other hosts, by host. They are blocked. */
  elsewhere: string[];
}

const quiet_ms = 60_000;

export async function firstLoad(url: string): Promise<FirstLoad> {
  const browser = await launchBrowser();
  const elsewhere = new Set<string>();
  const bodies: Promise<number>[] = [];
  try {
    const page = await browser.newPage();
    const own = new URL(url).origin;
    await page.route(
      (to) => to.origin !== own && to.protocol.startsWith("http"),
      (route) => {
        elsewhere.add(new URL(route.request().url()).host);
        return route.abort();
      },
    );
    page.on("response", (response) => {
      if (!response.url().startsWith(own)) return;
      // A redirect has no body.
      bodies.push(
        response.body().then(
          (body) => (body.length === 0 ? 0 : gzipSync(body).length),
          () => 0,
        ),
      );
    });
    await page.goto(url, { waitUntil: "networkidle", timeout: quiet_ms });
    const sizes = await Promise.all(bodies);
    return { requests: sizes.length, gzip_bytes: sizes.reduce((sum, one) => sum + one, 0), elsewhere: [...elsewhere] };
  } finally {
    await browser.close();
  }
}
