/**
 * Tools that a caller lists only by their type. Anthropic publishes the form of their calls, which Anthropic's own
 * models know. All models of this service get these tools as functions, under the names that callers expect.
 */

interface PublishedTool {
  name: string;
  description: string;
  input_schema: Readonly<Record<string, unknown>>;
}

const text = (description: string) => ({ type: "string", description });
const line = (description: string) => ({ type: "integer", description });
const commands = (names: readonly string[]) => ({ type: "string", enum: names, description: "What to do." });
const input = (properties: object, required: readonly string[]) => ({ type: "object", properties, required });

const bash: PublishedTool = {
  name: "bash",
  description:
    "Runs commands in a bash session that stays open from call to call, so that its working directory, variables and files remain.",
  input_schema: input(
    {
      command: text("The command to run. Required unless 'restart' is true."),
      restart: { type: "boolean", description: "True starts the session anew, without running a command." },
    },
    [],
  ),
};

/** The fields of a command that edits files. `inserted`: the field with the text that `insert` adds. */
const fileFields = (inserted: "new_str" | "insert_text") => ({
  path: text("The absolute path of the file or directory."),
  view_range: {
    type: "array",
    items: { type: "integer" },
    description: "For 'view' of a file: the first and the last line, counted from 1; -1 as the last means the end.",
  },
  file_text: text("For 'create': the content of the new file."),
  old_str: text("For 'str_replace': the text to replace, which occurs exactly once, white space included."),
  new_str: text(
    `For 'str_replace': what stands in its place.${inserted === "new_str" ? " For 'insert': the text to insert." : ""}`,
  ),
  insert_line: line("For 'insert': the line after which to insert; 0 is the beginning of the file."),
  ...(inserted === "insert_text" ? { insert_text: text("For 'insert': the text to insert.") } : {}),
});

const fileCommands = ["view", "create", "str_replace", "insert"];

const editor: PublishedTool = {
  name: "str_replace_based_edit_tool",
  description: "Views, creates and edits text files. 'view' shows a file, or lists a directory.",
  input_schema: input({ command: commands(fileCommands), ...fileFields("insert_text") }, ["command", "path"]),
};

const firstEditor: PublishedTool = {
  name: "str_replace_editor",
  description:
    "Views, creates and edits text files. 'view' shows a file, or lists a directory. 'undo_edit' takes the last edit of a file back.",
  input_schema: input({ command: commands([...fileCommands, "undo_edit"]), ...fileFields("new_str") }, [
    "command",
    "path",
  ]),
};

const memory: PublishedTool = {
  name: "memory",
  description:
    "Keeps notes in files below /memories, which remain after this conversation. Look there before you begin, and write down what will be needed later.",
  input_schema: input(
    {
      command: commands([...fileCommands, "delete", "rename"]),
      ...fileFields("insert_text"),
      path: text("The path of the file or directory, below /memories. For every command but 'rename'."),
      old_path: text("For 'rename': the path as it is."),
      new_path: text("For 'rename': the path as it shall be."),
    },
    ["command"],
  ),
};

export const publishedTools: Readonly<Record<string, PublishedTool>> = {
  bash_20241022: bash,
  bash_20250124: bash,
  text_editor_20241022: firstEditor,
  text_editor_20250124: firstEditor,
  text_editor_20250429: editor,
  text_editor_20250728: editor,
  memory_20250818: memory,
};

export function publishedTool(type: string | null | undefined): PublishedTool | undefined {
  return typeof type === "string" && Object.hasOwn(publishedTools, type) ? publishedTools[type] : undefined;
}
