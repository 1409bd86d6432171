/** `npm run truth`: prints the complete table of docs/metering.md, How it works. */
import { charges, ends } from "./charges.ts";
import { rows } from "./rows.ts";
import { shownOf } from "./table.ts";

const cells = await charges(rows);
process.stdout.write(`${shownOf(rows, ends, cells)}\n`);
