import { defineConfig, type MarkdownRenderer } from "vitepress";
// Both stand beside this file where the site is built (scripts/site/assemble.ts).
import { anchorOf } from "./anchor.ts";
import contracts from "./contracts.json" with { type: "json" };

const page = (text: string, link: string) => ({ text, link });

const start = [
  page("What Sluice is", "/"),
  page("Ten minutes to a limited key", "/start"),
  page("200 people in an afternoon", "/afternoon"),
  page("For managers", "/managers"),
  page("Your first request", "/first-request"),
];
const use = [
  page("Clients", "/clients"),
  page("Protocols", "/protocols"),
  page("Errors", "/errors"),
  page("Simulator", "/simulator"),
];
const administer = [
  page("Tasks", "/tasks"),
  page("Console", "/console"),
  page("Commands", "/cli"),
  page("Limits", "/limits"),
  page("Management interface", "/management"),
  page("People and sign-in", "/identity"),
  page("Metering", "/metering"),
  page("Reports", "/reports"),
  page("Notices", "/notices"),
];
const run = [
  page("Configuration", "/configuration"),
  page("Engines", "/engines"),
  page("Routing", "/routing"),
  page("Deploying", "/deploying"),
  page("Databases", "/databases"),
  page("Operating", "/operating"),
  page("Upgrading", "/upgrading"),
  page("Security", "/security"),
];
const measured = [
  page("Performance", "/performance"),
  page("Scale", "/scale"),
  page("Proof", "/proof"),
  page("Attacks", "/attacks"),
  page("Compared", "/compared"),
];
const develop = [
  page("Contributing", "/contributing"),
  page("Recipes", "/contributing-recipes"),
  page("Releasing", "/releasing"),
  page("Changes", "/changelog"),
  page("Design", "/design/"),
  page("Decisions", "/decisions"),
];

/** The name of a row needs no name of its own: an empty cell of the head is no heading for a screen reader. */
function emptyHeads(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push("empty-heads", ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      if (token.type !== "th_open" || tokens[index + 1]?.content !== "") continue;
      token.tag = "td";
      tokens[index + 2]!.tag = "td";
    }
  });
}

export default defineConfig({
  title: "Sluice",
  description: "A model inference service that a team runs itself",
  lang: "en",
  srcDir: "pages",
  outDir: "dist",
  cacheDir: "cache",
  // A host of files finds `/clients` and `/clients.html` alike only where it is told to; this works everywhere.
  cleanUrls: false,
  // `npm run site:check` follows every link and anchor of what was built, these too.
  ignoreDeadLinks: [/^\/files\//],
  lastUpdated: false,
  markdown: {
    // The pages are text: what looks like a tag in them is meant to be read.
    html: false,
    linkify: false,
    config: emptyHeads,
    attrs: { disable: true },
    anchor: { slugify: anchorOf },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  head: [["meta", { name: "color-scheme", content: "light dark" }]],
  themeConfig: {
    outline: { level: [2, 3], label: "On this page" },
    externalLinkIcon: true,
    nav: [page("Start", "/start"), page("Clients", "/clients"), page("Contract", contracts.client[0]!.link)],
    sidebar: [
      { text: "Start", items: start },
      { text: "Use it", items: use },
      { text: "Administer it", items: administer },
      { text: "Run it", items: run },
      { text: "Contract", items: contracts.client },
      { text: "Contract of management", items: contracts.management },
      { text: "Measured and tried", items: measured },
      { text: "Change it", items: develop },
    ],
    search: {
      provider: "local",
      options: {
        miniSearch: {
          options: {
            // It runs in the browser too, where only its own text is known. Words of a question are on every page.
            processTerm: (term) =>
              /^(an?|and|are|as|at|be|by|can|do|does|for|from|get|has|have|how|in?|if|is|it|my?|of|on|or|the|this|to|what|when|where|which|who|why|with|your?)$/i.test(
                term,
              )
                ? null
                : term.toLowerCase(),
          },
          searchOptions: {
            combineWith: "OR",
            fuzzy: 0.1,
            prefix: true,
            boost: { title: 4, titles: 2, text: 1 },
            // Pages that explain come before those that list.
            boostDocument: (page) => (/^\/(api|management-api|design|decisions|changelog)\b/.test(page) ? 0.3 : 1),
          },
        },
      },
    },
  },
});
