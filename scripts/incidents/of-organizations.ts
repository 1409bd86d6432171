import type { Incident } from "./incident.ts";
import { trickle } from "./load.ts";
import { frail, heardBy, sound } from "./site.ts";

const usedUp: Incident = {
  what: "an organization uses its week up, and a key of it is about to expire",
  alerts: [],
  async begin({ nodes: [first], channels }) {
    const slug = "used-up";
    await first.command("org", "create", slug, "--plan", "unlimited");
    await first.command("limit", "set", "org", slug, "week=0.01");
    // Notices at 50 and 80 % are enough. A limit may never be used up completely, because the rest may not be enough
    // for another request.
    await heardBy(channels, first, slug, "--shares", "50,80");
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const words = ["key", "create", "--org", slug, "--name", "evaluation", "--expires", tomorrow, "--json"];
    const { key } = JSON.parse(await first.command(...words)) as { key: string };
    const load = trickle({ url: first.url, key }, { model: sound, directives: "tokens=800" }, 5);
    return {
      notices: {
        begun: [
          `50 % of the limit of the week of ${slug} are used`,
          `80 % of the limit of the week of ${slug} are used`,
          `The key evaluation of ${slug} expires soon`,
        ],
        over: [],
      },
      signs: async () => ({}),
      mend: load.stop,
    };
  },
};

const straying: Incident = {
  what: "an engine sends more than the answer",
  alerts: [],
  async begin({ nodes: [first], engines: [engine] }) {
    engine.set("straying");
    const load = trickle(first, { model: frail, directives: "tokens=4" }, 1);
    return {
      notices: { begun: ["The engine engine-0 sent an answer that nobody asked for"], over: [] },
      signs: async () => ({}),
      async mend() {
        engine.set("well");
        await load.stop();
      },
    };
  },
};

export const ofOrganizations = { usedUp, straying };
