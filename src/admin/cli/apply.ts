/** `sluice apply`: makes organizations, teams, keys, plans and the rights of people match a file. */
import type { Command } from "commander";
import {
  type OrganizationsFile,
  organizationsFile_bytes_max,
  readOrganizationsFile,
} from "../../config/organizations-file.ts";
import { ConfigurationError } from "../../config/problem.ts";
import { readFileBounded } from "../../config/source.ts";
import { differences } from "../management/apply/difference.ts";
import { patternsIn } from "../management/apply/patterns.ts";
import { hasSecret, perform, type Saver } from "../management/apply/perform.ts";
import { type NeededState, readState } from "../management/apply/state.ts";
import type { Step } from "../management/apply/step.ts";
import { ownOf, type WantedFile } from "../management/apply/wanted.ts";
import { unmatchedInWords, unmatchedPatterns } from "../management/model-patterns.ts";
import type { Management } from "../management/verbs.ts";
import { type SecretsFolder, secretsFolder } from "./apply-secrets.ts";
import { describeStep, shownStep, summaryOf } from "./apply-words.ts";
import { withManagement } from "./connect.ts";
import { type JsonFlag, jsonOption, printAnswer } from "./option.ts";
import type { CommandContext, Services } from "./services.ts";

interface ApplyOptions extends JsonFlag {
  file: string;
  dryRun?: true;
  exitCode?: true;
  prune?: true;
  secrets?: string;
}

const wouldChange_code = 3;

export function addApplyCommand(program: Command, { services, exitWith }: CommandContext): void {
  program
    .command("apply")
    .description("make organizations, teams, keys, plans and people's memberships match a file")
    .requiredOption("-f, --file <file>", "YAML file of organizations; sluice export writes one")
    .option("--dry-run", "show what would change, and change nothing")
    .option("--exit-code", "with --dry-run: end with code 3 if something would change")
    .option(
      "--prune",
      "take away what a section of the file does not name: keys, teams, plans, and what people were given by hand",
    )
    .option("--secrets <folder>", "where the secrets of new keys are written, each into a file of its own")
    .addOption(jsonOption())
    .addHelpText("after", help)
    .action(async (options: ApplyOptions) => {
      const bytes = readFileBounded(options.file, organizationsFile_bytes_max);
      if (!bytes) throw new Error(`there is no file ${options.file}`);
      const file = readOrganizationsFile(bytes, options.file);
      const steps = await withManagement(services, (manage) => applied(manage, file, { services, options }));
      if (options.dryRun && options.exitCode && steps > 0) exitWith(wouldChange_code);
    });
}

interface Run {
  services: Services;
  options: ApplyOptions;
}

/** Applies the file and returns the number of steps. No step is performed before all steps are known. */
async function applied(manage: Management, file: OrganizationsFile, run: Run): Promise<number> {
  const { services, options } = run;
  const folder = options.secrets === undefined ? null : secretsFolder(options.secrets);
  const needed = file.wanted.people ? "all" : "none";
  const state = await readState(manage, ({ slug }) => needsOf(file.wanted, slug), needed);
  const { phases, problems, absent } = differences(file.wanted, state, {
    prunes: options.prune === true,
    now_ms: services.now_ms(),
    isSecretLost: (key) => folder?.isLost(key) === true,
  });
  if (problems.length > 0) throw new ConfigurationError(file.linesOf(problems));
  for (const name of absent)
    services.terminal.err(`warning: ${name} has not come in yet; people appear when they first sign in: left out\n`);
  const unmatched = await unmatchedIn(manage, file, services);
  const steps = phases.flat();
  if (options.dryRun || steps.length === 0) {
    const words = steps.map((step) => describeStep(services.terminal, step)).join("");
    const changes = steps.map((step) => shownStep(step, null));
    const end =
      steps.length === 0
        ? `Everything${absent.length > 0 ? " else" : ""} is as the file says.\n`
        : `${summaryOf(steps, "to")} Nothing was changed: this was a dry run.\n`;
    const answer = { applied: !options.dryRun, changes, secrets: [], absent, unmatched_models: unmatched, failed: [] };
    printAnswer(services.terminal, options, answer, `${words}${end}`);
    return steps.length;
  }
  await make(manage, { phases, absent, unmatched, file, folder, ...run });
  return steps.length;
}

/**
 * Warns of limits for models that the server does not have today, and returns the patterns of these limits, each with
 * the most similar pattern, which was perhaps meant.
 */
async function unmatchedIn(manage: Management, file: OrganizationsFile, { terminal }: Services): Promise<Unmatched> {
  const places = patternsIn(file.wanted);
  if (places.length === 0) return {};
  const { data } = await manage.listModels();
  const unmatched = unmatchedPatterns(
    places.map(({ pattern }) => pattern),
    data.flatMap(({ id, aliases }) => [id, ...aliases]),
  );
  const first = Object.entries(unmatched).map(([pattern, closest]) => ({
    path: places.find((place) => place.pattern === pattern)!.path,
    message: unmatchedInWords(closest),
  }));
  for (const line of file.linesOf(first)) terminal.err(`warning: ${line}\n`);
  return unmatched;
}

type Unmatched = ReturnType<typeof unmatchedPatterns>;

interface Making extends Run {
  phases: Step[][];
  absent: string[];
  unmatched: Unmatched;
  file: OrganizationsFile;
  folder: SecretsFolder | null;
}

/**
 * Performs the steps, and prints each step when it is done, so that the output of a run that is cut off is complete.
 */
async function make(manage: Management, making: Making): Promise<void> {
  const { phases, absent, unmatched, file, folder, services, options } = making;
  const { terminal } = services;
  const saver = saverOf(phases.flat(), folder);
  const { done, failed } = await perform(manage, phases, {
    saver,
    onDone({ step, secret }) {
      if (options.json) return;
      terminal.out(describeStep(terminal, step));
      if (secret !== null) terminal.out(`    its secret is in ${secret}\n`);
    },
  });
  if (failed.length === 0) folder?.close();
  const problems = failed.map(({ step, cause }) => ({ path: step.path, message: messageOf(cause) }));
  const lines = file.linesOf(problems);
  const changes = done.map(({ step, secret }) => shownStep(step, secret));
  const secrets = done.flatMap(({ secret }) => (secret === null ? [] : [secret]));
  const summary = summaryOf(
    done.map(({ step }) => step),
    "done",
  );
  const isWhole = failed.length === 0;
  const answer = { applied: isWhole, changes, secrets, absent, unmatched_models: unmatched, failed: lines };
  printAnswer(terminal, options, answer, isWhole ? `Applied: ${summary}\n` : "");
  if (isWhole) return;
  const count = done.length === 0 ? "Nothing else was changed." : `Until then: ${summary}`;
  throw new Error(`${lines.join("; ")} ${count} To do the rest, run the same command again.`);
}

/**
 * The saver of secrets; null if no step creates a secret. Throws, before any step is performed, if a secret would be
 * created and no folder was given.
 */
function saverOf(steps: readonly Step[], folder: SecretsFolder | null): Saver | null {
  if (!steps.some(({ calls }) => calls.some(hasSecret))) return null;
  if (folder) return folder.open();
  throw new Error("The file has keys that are to be made. Say where to write their secrets: --secrets FOLDER");
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));

/**
 * The parts of the organization's state that have to be read because the file names them; null: nothing has to be read.
 */
function needsOf({ organizations, people }: WantedFile, slug: string): NeededState | null {
  const wanted = ownOf(organizations, slug);
  const isPersonsPlace = Object.values(people ?? {}).some(
    ({ memberships = {}, limits = {} }) => Object.hasOwn(memberships, slug) || Object.hasOwn(limits, slug),
  );
  if (!wanted) return isPersonsPlace ? { ...nothing, limits: true, teams: true } : null;
  const { limits, notices, teams, keys } = wanted;
  const hasThings = teams !== undefined || keys !== undefined || isPersonsPlace;
  return {
    limits: limits !== undefined || hasThings,
    notices: notices !== undefined,
    teams: hasThings,
    keys: keys !== undefined,
  };
}

const nothing: NeededState = { limits: false, notices: false, teams: false, keys: false };

const help = `
The file has organizations by their slugs, plans, teams and keys by their names,
and people by a verified e-mail address, or by issuer and subject. All that is
left out stays as it is: fields, objects (unless --prune removes them), and
single names in limits, labels, notices and memberships.

  plans:                              # those made here, not in sluice.yaml
    gold: { week: 20, concurrent_requests: 16 } # in the service's currency
  organizations:
    acme:
      name: Acme, Inc.
      plan: gold
      anchor: 2026-11-01              # where weeks and months are counted from
    globex:
      plan: starter
      calendar: { zone: Asia/Tokyo }  # in the place of an anchor; null: none
      status: suspended               # or active, or closed, for good
      extra_usage_cap: 20             # null: off
      key_lifetime_max_days: 90       # null: no limit
      key_unused_max_days: 30         # null: no limit
      keeps_content: false
      limits:
        keys: { session: 0.5 }        # what keys get without one of their own
        members: { week: 5 }          # and people; none: no limit
      notices:                        # null: no webhook
        url: https://hooks.example.com/sluice
        shares: [80, 100]
        key_expiry_days: 14
      teams:
        research:
          limits:
            own: { month: 50 }
            keys: { requests_per_minute: 60 }
            models: { openai/*: { month: 10 } } # null: no longer
      keys:
        build server:                 # a new one needs --secrets
          scopes: [models:read, inference:create]
          models: [acme/writer-1]     # null: all
          expires_at: 2030-01-31      # null: never
          owner: ann
          labels: { stage: production }
          allow_from: [10.0.0.0/8]    # null: all
          team: research              # null: none
          limits: { own: { month: 5 } }
  people:                             # what they have by hand, beside rules
    ann@example.com:
      suspended: false
      role: viewer                    # for the service, or admin; null: none
      memberships:                    # each as a whole; null: none by hand
        acme: { role: member, team: research, scopes: [models:read] }
      limits:
        acme: { own: { week: 2 } }
    https://login.example 248289761001: { suspended: true }

With --prune, a key that the section 'keys' of its organization does not name is
revoked, and so a team or a plan is removed. Somebody whom 'people' does not
name loses memberships by hand, a role by hand and limits of their own; somebody
whom it names, those that 'memberships' or 'limits' do not name. A section that
is left out keeps all. Nobody is suspended, resumed or forgotten, and no
organization closed, because a file does not name them.

Exit codes: 0 success, also of --dry-run; 1 failure: what was done is printed,
and the same command does the rest; 3 something would change, with --dry-run and
--exit-code.

Examples:
  $ sluice export > organizations.yaml
  $ sluice apply -f organizations.yaml --dry-run
  $ sluice apply -f organizations.yaml --secrets /run/secrets/sluice`;
