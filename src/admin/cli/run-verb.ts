/** Runs a command that is one call of a verb. */

import { encode } from "../../core/schema/codec.ts";
import { type Answer, type Management, type VerbName, verbNamed } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import { type JsonFlag, printAnswer } from "./option.ts";
import type { Services } from "./services.ts";

type Call<Name extends VerbName> = (input: Parameters<Management[Name]>[0]) => Promise<Answer<Name>>;

/** Calls the verb and prints its answer; `inWords` is the answer for people. */
export async function runVerb<Name extends VerbName>(
  services: Services,
  flags: JsonFlag,
  name: Name,
  input: Parameters<Management[Name]>[0],
  inWords: (answer: Answer<Name>) => string,
): Promise<void> {
  const answer = await withManagement(services, (manage) => (manage[name] as unknown as Call<Name>)(input));
  printAnswer(services.terminal, flags, encode(verbNamed(name).answers, answer as never), inWords(answer));
}
