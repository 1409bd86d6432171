// The list of all attacks. `npm run attacks` prints their results as a table, and attacks.test.ts runs the quick ones.

import { allowedBodies } from "./allowed-bodies.ts";
import type { Attack } from "./attack.ts";
import { compactedBodies } from "./compacted-bodies.ts";
import { engineAnswers } from "./engine-answers.ts";
import { faults } from "./faults.ts";
import { honestBodies } from "./honest-bodies.ts";
import { hungryClients } from "./hungry.ts";
import { keptAnswers } from "./kept.ts";
import { parallelBodies } from "./parallel-bodies.ts";
import { refusedBodies } from "./refused-bodies.ts";
import { socketAttacks } from "./sockets.ts";

export const attacks: readonly Attack[] = [
  ...refusedBodies,
  ...allowedBodies,
  ...compactedBodies,
  ...honestBodies,
  parallelBodies,
  ...hungryClients,
  ...socketAttacks,
  ...keptAnswers,
  ...faults,
  ...engineAnswers,
];
