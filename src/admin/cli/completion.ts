/**
 * `sluice completion <shell>`: prints a shell script that completes commands and options. The script is made from the
 * definitions of the commands.
 */
import type { Command, Option } from "commander";
import type { CommandContext } from "./services.ts";

const shells = ["bash", "zsh", "fish"] as const;

export function addCompletionCommand(program: Command, { services }: CommandContext): void {
  program
    .command("completion")
    .description("print a script that completes commands and options in your shell")
    .argument("<shell>", `one of ${shells.join(", ")}`)
    .addHelpText("after", help)
    .action((shell: string, _: unknown, command: Command) => {
      const script = scripts[shell as (typeof shells)[number]];
      if (!script) command.error(`error: there is no completion for '${shell.slice(0, 40)}'; use ${shells.join(", ")}`);
      services.terminal.out(script(wordsAfter(program)));
    });
}

/** The words that may come next, by the words typed before them (`org create`, or no words). */
type Words = ReadonlyMap<string, readonly string[]>;

function wordsAfter(program: Command): Words {
  const found = new Map<string, string[]>();
  const visit = (command: Command, typed: string) => {
    const options = [...command.options, ...(command.parent ? program.options.filter(isServer) : [])];
    const names = options.filter(({ hidden }) => !hidden).map(({ long, short }) => long ?? short ?? "");
    found.set(typed, [...command.commands.map((one) => one.name()), ...names, "--help"]);
    for (const one of command.commands)
      for (const name of [one.name(), ...one.aliases()]) visit(one, `${typed} ${name}`.trim());
  };
  visit(program, "");
  return found;
}

const isServer = ({ long }: Option) => long === "--server";

/**
 * The completion function of bash and zsh, with a `case` branch for each command, by the typed words that are not
 * options. `before`: the expansion to the words before the one that is completed. `offer`: the line that offers names.
 */
const functionOf = (words: Words, before: string, offer: (names: string) => string) => `_sluice() {
  local typed="" word
  for word in "\${${before}}"; do
    [[ $word == -* ]] || typed="\${typed:+$typed }$word"
  done
  while :; do
    case "$typed" in
${[...words].map(([typed, names]) => `    "${typed}") ${offer(names.join(" "))}; return ;;`).join("\n")}
    esac
    [[ $typed == *" "* ]] || return
    typed="\${typed% *}"
  done
}
`;

const scripts: Record<(typeof shells)[number], (words: Words) => string> = {
  bash: (words) => `${functionOf(
    words,
    "COMP_WORDS[@]:1:COMP_CWORD-1",
    (names) => `COMPREPLY=($(compgen -W "${names}" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
  )}complete -o default -F _sluice sluice
`,
  zsh: (words) => `#compdef sluice
${functionOf(words, "(@)words[2,CURRENT-1]", (names) => `compadd -- ${names}`)}# As a file in fpath, this is the function itself at its first call; else it is read by a shell that begins.
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`,
  fish: (words) => `function __sluice_words
  set -l typed (string match --invert -- '-*' (commandline -opc)[2..])
  while true
    switch "$typed"
${[...words].map(([typed, names]) => `      case "${typed}"\n        string split ' ' -- '${names.join(" ")}'\n        return`).join("\n")}
    end
    test (count $typed) -gt 1; or return
    set typed $typed[1..-2]
  end
end
complete -c sluice -a '(__sluice_words)'
`,
};

const help = `
Examples:
  $ sluice completion bash >/etc/bash_completion.d/sluice
  $ sluice completion zsh >"\${fpath[1]}/_sluice"
  $ sluice completion fish >~/.config/fish/completions/sluice.fish`;
