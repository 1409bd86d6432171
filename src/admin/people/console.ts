/**
 * Serves the console's port: the pages, signing in and out, the unsubscribe links of mails, and the verbs of management
 * for people and operators who are signed in.
 */

import type { Framed } from "../../core/http/frame.ts";
import { Fault } from "../../core/inference/fault.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { unlisted } from "../../core/operations/unlisted.ts";
import { encodeFault } from "../../core/protocol/openai-chat/fault.ts";
import { type ConsoleParts, endConsoleSession } from "../../features/identity/console.ts";
import type { IdentityParts } from "../../features/identity/identity.ts";
import type { Subscriptions } from "../../features/notices/store/notice.ts";
import type { ConsoleFiles } from "../console/files.ts";
import type { ManagementEntrance } from "../http/gate.ts";
import { managementMounted } from "../http/mounted.ts";
import { fromIssuer, toIssuer } from "./callback.ts";
import { requireOwnPage, requireSession } from "./console-entrance.ts";
import { assetsPath, type ConsolePages, consolePages } from "./files.ts";
import { backchannelLogout } from "./leave.ts";
import { forBrowsers } from "./place.ts";
import { sessionOperations } from "./session.ts";
import { callerOf, organizationHeader } from "./session-caller.ts";
import { unsubscribing } from "./unsubscribe.ts";

export interface ConsoleServed {
  parts: ConsoleParts;
  /** The management interface of the operator's port: the same verbs, contexts and contract. */
  management: ManagementEntrance;
  files: ConsoleFiles;
  /** The subscriptions to mails, which the unsubscribe links end and renew. */
  subscriptions: Subscriptions;
}

interface MountedConsole {
  operations: Operation[];
  /** Serves the addresses of pages; all other addresses of the port are operations. */
  page: Framed;
}

export function mountedConsole({ parts, management, files, subscriptions }: ConsoleServed): MountedConsole {
  const pages = consolePages(files);
  return {
    operations: [
      ...pageOperations(parts, pages),
      ...sessionOperations(parts),
      ...unsubscribing(parts, subscriptions),
      ...(parts.people ? issuerOperations(parts, parts.people) : []),
      ...managementMounted(consoleEntrance(parts, management)),
    ],
    page: {
      path: "/*",
      faultBody: encodeFault,
      work(call) {
        requireOwnPage(parts, call);
        return pages.document(call.request);
      },
    },
  };
}

function pageOperations(parts: ConsoleParts, pages: ConsolePages): Operation[] {
  return [
    unlisted({
      id: "getConsole",
      method: "get",
      path: "/",
      type: "text/html",
      handle(_, call) {
        requireOwnPage(parts, call);
        return pages.document(call.request);
      },
    }),
    unlisted({
      id: "getConsoleAsset",
      method: "get",
      path: assetsPath,
      type: "application/octet-stream",
      handle(_, call) {
        requireOwnPage(parts, call);
        const file = pages.asset(call.request);
        if (!file) throw new Fault("route_not_found", "There is no such file of the console. Load the page again.");
        return file;
      },
    }),
  ];
}

function issuerOperations(parts: ConsoleParts, people: IdentityParts): Operation[] {
  return [
    forBrowsers(people, "console", {
      id: "beginSignIn",
      method: "get",
      path: "/sign-in",
      handle: (visit) => toIssuer(visit, { issuer: visit.query.get("issuer"), returnTo: "/" }),
    }),
    forBrowsers(people, "console", {
      id: "finishSignIn",
      method: "get",
      path: "/oauth/callback",
      handle: (visit) => fromIssuer(visit, (cookie) => endConsoleSession(parts, cookie)),
    }),
    backchannelLogout(people),
  ];
}

/**
 * Lets sessions of the console use the verbs. A session may do what an operator's token of the same role may do. The
 * console's port refuses tokens in headers.
 */
function consoleEntrance(parts: ConsoleParts, management: ManagementEntrance): ManagementEntrance {
  return {
    ...management,
    // Requests need no further check of TLS: the port speaks HTTPS, stands behind a proxy that does, or is on this
    // machine (docs/console.md, The port).
    tls: "proxy",
    async authenticate(call) {
      requireOwnPage(parts, call);
      const { headers } = call.request;
      if (headers.has("authorization"))
        throw new Fault("invalid_value", "The console's port takes no token. Ask the operator's port with it.");
      return callerOf(await requireSession(parts, call), headers.get(organizationHeader));
    },
  };
}
