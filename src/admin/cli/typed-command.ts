/** A command whose usage errors show the command's syntax. */
import { Command, type ErrorOptions, type Option } from "commander";

export class TypedCommand extends Command {
  override createCommand(name?: string): Command {
    return new TypedCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    return super.error(`${message}\nUsage: ${formOf(this)}`, options);
  }
}

/** The syntax of the command: `sluice team create [options] --org <org> --name <name>` */
function formOf(command: Command): string {
  const required = command.options.filter(({ mandatory }) => mandatory).map(optionForm);
  return [command.createHelp().commandUsage(command), ...required].join(" ");
}

/** The syntax of the option; with choices: `--window <session|week>`. */
function optionForm({ flags, argChoices }: Option): string {
  return argChoices === undefined ? flags : flags.replace(/<.*>/, `<${argChoices.join("|")}>`);
}
