// `npm run conformance -- URL`: checks whether a server follows the three protocols. proof/README.md, Conformance.

import { conformance } from "./command.ts";

process.exitCode = await conformance(process.argv.slice(2), {
  key: process.env.SLUICE_CONFORMANCE_KEY ?? null,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
