import type { Mutant } from "./mutant.ts";

const rule = "docs/design/service.md, Workers";
const watching = "test/features/workers/supervisor.test.ts";
const living = "test/features/workers/life.test.ts";

export const workers: Mutant[] = [
  {
    name: "a reload that comes before anybody serves is forgotten",
    file: "src/features/workers/supervisor.ts",
    find: "voting !== null || voters.length === 0",
    replace: "voting !== null",
    caughtBy: [`${watching} > a reload that is asked for before`],
    rule,
  },
  {
    name: "a worker that died is not replaced",
    file: "src/features/workers/crew.ts",
    find: "      pauses.delete(pause);\n      start(number);\n",
    replace: "      pauses.delete(pause);\n",
    caughtBy: [`${watching} > a worker that says nothing`],
    rule,
  },
  {
    name: "a node that cannot start tries for ever",
    file: "src/features/workers/crew.ts",
    find: "return unstarted.size < tried.size;",
    replace: "return unstarted.size <= tried.size;",
    caughtBy: [`${watching} > where all are lost`],
    rule,
  },
  {
    name: "a worker that hangs is left alone",
    file: "src/features/workers/supervisor.ts",
    find: "      worker.child.kill();\n",
    replace: "",
    caughtBy: [`${watching} > a worker that says nothing`],
    rule,
  },
  {
    name: "a new configuration is taken by those that like it",
    file: "src/features/workers/ballot.ts",
    find: "for (const problem of said) problems.add(problem);",
    replace: "",
    caughtBy: [`${watching} > a reload is taken by all or none`],
    rule,
  },
  {
    name: "a worker in another's place reads what was refused",
    file: "src/features/workers/supervisor.ts",
    find: "if (problems.length === 0) file = next;",
    replace: "file = next;",
    caughtBy: [`${living} > reaches every worker`],
    rule,
  },
  {
    name: "the group's signal counts as a second one",
    file: "src/features/workers/member.ts",
    find: "stops++ === 0 ? stopped.promise : hurried.promise",
    replace: "stops++ === 0 ? stopped.promise : stopped.promise",
    caughtBy: [`${living} > is one, when the supervisor`],
    rule,
  },
  {
    name: "workers outlive their supervisor",
    file: "src/node/worker.ts",
    find: 'onLost: (lost) => void process.on("disconnect", lost),',
    replace: "onLost: () => {},",
    caughtBy: [`${living} > without their supervisor`],
    rule,
  },
  {
    name: "what a dead worker had counted is forgotten",
    file: "src/features/telemetry/merged.ts",
    find: "      departed = together([...departed, ...countedBy(last.get(worker) ?? [])]);\n",
    replace: "      departed = together([...departed]);\n",
    caughtBy: ["test/features/telemetry/merged.test.ts"],
    rule,
  },
  {
    name: "each worker takes the memory of the node",
    file: "src/config/workers.ts",
    find: "memory_bytes: share(limits.memory_bytes),",
    replace: "memory_bytes: limits.memory_bytes,",
    caughtBy: ["test/features/workers/parts.test.ts > what workers share"],
    rule,
  },
  {
    name: "a worker that cannot admit goes unsaid",
    file: "src/node/membership.ts",
    find: "others.length > 0",
    replace: "others.length < 0",
    caughtBy: ["test/features/workers/ports.test.ts > a worker that hangs"],
    rule,
  },
  {
    name: "connections stay where the kernel has put them",
    file: "src/core/http/frame.ts",
    find: " || dependencies.shedsConnection()",
    replace: "",
    caughtBy: ["test/features/workers/ports.test.ts > connections that live long"],
    rule,
  },
];
