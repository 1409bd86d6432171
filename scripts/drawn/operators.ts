// All mutation operators by name. The name is part of a mutant's identity: if it changes, entries in the list of
// equivalent mutants become stale.

import * as conditions from "./conditions.ts";
import type { Operator } from "./source.ts";
import * as statements from "./statements.ts";
import * as values from "./values.ts";

export const operators: Readonly<Record<string, Operator>> = {
  "condition negated": conditions.conditionNegated,
  "boundary shifted": conditions.boundaryShifted,
  "equality turned": conditions.equalityTurned,
  "and for or": conditions.andForOr,
  "operand dropped": conditions.operandDropped,
  "every for some": conditions.everyForSome,
  "fallback dropped": values.fallbackDropped,
  "constant off by one": values.constantOffByOne,
  "truth turned": values.truthTurned,
  "sum turned": values.sumTurned,
  "least for greatest": values.leastForGreatest,
  "text emptied": values.textEmptied,
  "list emptied": values.listEmptied,
  "arguments swapped": values.argumentsSwapped,
  "await dropped": statements.awaitDropped,
  "statement dropped": statements.statementDropped,
  "statements swapped": statements.statementsSwapped,
  "returned early": statements.returnedEarly,
  "nothing returned": statements.nothingReturned,
  "empty returned": statements.emptyReturned,
  "truth returned": statements.truthReturned,
  "loop left": statements.loopLeft,
};
