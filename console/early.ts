/**
 * The script inside the HTML document. It asks the server who is signed in while the files of the pages load, not after
 * them. core/session.ts takes the answer.
 */
import { takeUp } from "./core/taking-up.ts";

/** The paths of files that pages load later. scripts/console.ts writes them here. */
declare const laterFiles: readonly string[];

globalThis.takingUp = takeUp(() => {
  for (const path of laterFiles) {
    const link = document.createElement("link");
    link.rel = "modulepreload";
    link.href = path;
    document.head.append(link);
  }
});
