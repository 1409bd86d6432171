/** The verb that makes a link to open the console on the node's own machine (docs/console.md). */
import Type from "typebox";
import { minute } from "../../core/time/written.ts";
import { instant } from "../store/shapes.ts";
import { fail } from "./error.ts";
import { admins, examples } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Console");

const ConsoleLink = Type.Object(
  {
    url: Type.String({ description: "Opens the console, signed in, once." }),
    expires_at: instant("Until then."),
  },
  { $id: "ConsoleLink" },
);

export const consoleVerbs = [
  verb({
    name: "createConsoleLink",
    route: "POST /console/links",
    summary: "Make a link to the console",
    description:
      "Only `sluice console` on the machine of a node with the embedded database makes one; everybody else signs in at the console.",
    roles: admins,
    kind: "act",
    faults: ["wrong_state"],
    takes: Type.Object({}),
    answers: ConsoleLink,
    example: { takes: {}, answer: { url: "http://127.0.0.1:8081/#link=…", expiresAt: examples.at } },
    command: {
      words: "console",
      description: "print a link that opens the console once, signed in; for a server on this machine",
      says: ({ url }) => `${url}\n`,
      notes: ({ expiresAt }) => `It opens the console once, until ${minute(expiresAt)} UTC.\n`,
    },
    async act({ console, actor }) {
      if (console) return console.link(actor);
      return fail(
        "Links are for a node that runs on this machine with the embedded database: start one with sluice serve. Otherwise open the console at its own address, and sign in there.",
        "wrong_state",
      );
    },
  }),
] as const;
