/** Performs the steps of a difference, and reports which steps were done. */
import { ManagementError } from "../error.ts";
import type { NewKey } from "../key.ts";
import { type Management, verbNamed } from "../verbs.ts";
import type { Call } from "./kind.ts";
import { pooled } from "./pooled.ts";
import type { Step } from "./step.ts";

/** Keeps the secrets of new keys, each of which a verb returns only once. */
export interface Saver {
  /**
   * Called before a key is created or gets another secret: if the run crashes after this call, the next run knows that
   * the key's secret is lost.
   */
  begin(step: Step): void;
  /** Called if the key was not created because somebody else, who has its secret, has created it meanwhile. */
  refused(step: Step): void;
  /** Stores the secret, and returns the place where it is stored. Throws an Error if it cannot be stored. */
  save(step: Step, key: NewKey): string;
}

export interface Done {
  step: Step;
  /** The place where the secret of a new key was stored; null if the step made no secret. */
  secret: string | null;
}

export interface Performed {
  done: Done[];
  /**
   * The steps that failed. Some calls of a failed step may have succeeded before the failure; no step was begun after
   * it.
   */
  failed: { step: Step; cause: unknown }[];
}

export const hasSecret = ({ verb }: Call) => verb === "createKey" || verb === "rotateKey";

/**
 * Performs the steps, one phase after another. `saver` may be null if no call returns a secret. After a failure, steps
 * that have begun are finished, and no other step is begun.
 */
export async function perform(
  manage: Management,
  phases: readonly (readonly Step[])[],
  { saver, onDone }: { saver: Saver | null; onDone: (done: Done) => void },
): Promise<Performed> {
  const performed: Performed = { done: [], failed: [] };
  for (const steps of phases) {
    await pooled(steps, async (step) => {
      if (performed.failed.length > 0) return;
      try {
        const done = await performStep(manage, step, saver);
        performed.done.push(done);
        onDone(done);
      } catch (cause) {
        performed.failed.push({ step, cause });
      }
    });
  }
  return performed;
}

/**
 * Performs the calls of a step. Each call is made for the version that the previous call returned, so a change that
 * somebody else makes in between is never overwritten.
 */
async function performStep(manage: Management, step: Step, saver: Saver | null): Promise<Done> {
  let { version } = step;
  let made: string | undefined;
  let secret: string | null = null;
  for (const call of step.calls) {
    const secretSaver = hasSecret(call) ? saver : null;
    secretSaver?.begin(step);
    const answer = await performCall(manage, call, version, made).catch((cause) => {
      if (cause instanceof ManagementError && cause.code === "already_exists") secretSaver?.refused(step);
      throw cause;
    });
    version = answer.version ?? version;
    if (step.action === "add") made ??= answer.id;
    if (secretSaver) secret = secretSaver.save(step, answer as unknown as NewKey);
  }
  return { step, secret };
}

interface CallAnswer {
  id?: string;
  version?: number;
}

/**
 * Performs one call. `made`: the ID of the thing that the step has created, which is the default subject of the step's
 * other calls.
 */
function performCall(
  manage: Management,
  { verb, input }: Call,
  version: number | null,
  made: string | undefined,
): Promise<CallAnswer> {
  const call = manage[verb] as (input: unknown) => Promise<CallAnswer>;
  const { id, kind } = verbNamed(verb);
  const subject = made !== undefined && id !== null ? { [id]: made } : {};
  const isConditional = kind === "change" && version !== null;
  return call({ ...subject, ...input, ...(isConditional ? { version } : {}) });
}
