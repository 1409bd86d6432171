// Requests like those of agents and people: Messages requests whose tokens are counted. The expected counts are in
// counts.json.

type Message = { role: "user" | "assistant" | "system"; content: unknown };
export interface Case {
  name: string;
  system?: unknown;
  messages: Message[];
  tools?: unknown[];
}

const user = (content: unknown): Message => ({ role: "user", content });
const assistant = (content: unknown): Message => ({ role: "assistant", content });
const called = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
const result = (tool_use_id: string, content: unknown, is_error?: boolean) => ({
  type: "tool_result",
  tool_use_id,
  content,
  ...(is_error ? { is_error } : {}),
});

const shell = {
  name: "Shell",
  description:
    "Runs a command in a shell and gives back what it printed.\n\nUse it for builds, tests and version control. Never use it to read or write files; there are tools for that.\n- Quote paths that hold blanks.\n- Chain commands with && where one needs the other.",
  input_schema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      command: { type: "string", description: "The command to run" },
      timeout_ms: { type: "number", description: "How long it may take, in milliseconds (at most 600000)" },
      description: { type: "string", description: "What the command does, in five to ten words" },
      background: { type: "boolean", default: false, description: "Whether to go on without waiting for its end" },
    },
    required: ["command"],
    additionalProperties: false,
  },
};
const read = {
  name: "ReadFile",
  description: "Reads a file of this machine. Gives lines with their numbers.",
  input_schema: {
    type: "object",
    properties: {
      path: { type: "string", description: "Absolute path of the file" },
      offset: { type: "integer", description: "The line to begin with", minimum: 1 },
      limit: { type: "integer", description: "How many lines to read", minimum: 1, maximum: 2000 },
    },
    required: ["path"],
  },
};
const edit = {
  name: "EditFile",
  description: "Replaces text in a file. Fails where the old text is not found, or is found twice.",
  input_schema: {
    type: "object",
    properties: {
      path: { type: "string" },
      edits: {
        type: "array",
        description: "The replacements, done one after the other",
        items: {
          type: "object",
          properties: {
            old_text: { type: "string", description: "The text to replace" },
            new_text: { type: "string", description: "What to put in its place" },
            all: { type: "boolean", default: false },
          },
          required: ["old_text", "new_text"],
        },
      },
    },
    required: ["path", "edits"],
  },
};
const search = {
  name: "Search",
  description: "Finds lines that match a regular expression.",
  input_schema: {
    type: "object",
    properties: {
      pattern: { type: "string", description: "The regular expression" },
      glob: { type: ["string", "null"], description: "Which files to look at, such as **/*.ts" },
      output: { type: "string", enum: ["lines", "files", "count"], default: "files", description: "What to give back" },
      context: {
        type: "object",
        description: "Lines around a match",
        properties: { before: { type: "integer" }, after: { type: "integer" } },
      },
      kinds: { type: "array", items: { type: "string", enum: ["code", "prose", "data"] } },
    },
    required: ["pattern"],
  },
};
const todo = {
  name: "TodoWrite",
  description: "Keeps the list of what is to be done. Update it as soon as something is done.",
  input_schema: {
    type: "object",
    properties: {
      todos: {
        type: "array",
        items: {
          type: "object",
          properties: {
            content: { type: "string", minLength: 1 },
            status: { type: "string", enum: ["pending", "in_progress", "completed"] },
            due: { anyOf: [{ type: "string" }, { type: "null" }], description: "A date, or nothing" },
          },
          required: ["content", "status"],
        },
      },
    },
    required: ["todos"],
  },
};
const now = { name: "Now", description: "The time of day.", input_schema: { type: "object", properties: {} } };
const agentTools = [shell, read, edit, search, todo, now];

const agentSystem = [
  "You are a coding agent that works in a person's terminal. You read and change files, run commands and report what you did.",
  "# Manner\nAnswer in a few lines. No preamble, no summary of what was just shown. Use Markdown only where it helps; the terminal shows it in one typeface.",
  "# Work\n- Read before you write: follow the conventions of the file at hand, its names, its libraries.\n- Never assume that a library is there; look into package.json, Cargo.toml or go.mod first.\n- After a change run the checks of the project (`npm run check`, `make test`), and say so when there are none.\n- Do not commit unless you were asked to.",
  "# Tools\nCall several tools at once where none needs the result of another. Paths are absolute. A result may hold reminders from the system; they are not part of what the person said.",
  "<env>\nDirectory: /home/user/project\nGit repository: yes\nPlatform: linux\nDate: 2026-11-21\n</env>",
].join("\n\n");

const code = `import { createHash } from "node:crypto";

export interface Entry { key: string; value: unknown; expires_at: number }

/** Keeps what was computed, for a while. */
export class Cache {
  readonly #entries = new Map<string, Entry>();
  constructor(private readonly lifetime_ms: number, private readonly now: () => number) {}

  get<Value>(parts: readonly unknown[], compute: () => Value): Value {
    const key = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
    const known = this.#entries.get(key);
    if (known && known.expires_at > this.now()) return known.value as Value;
    const value = compute();
    this.#entries.set(key, { key, value, expires_at: this.now() + this.lifetime_ms });
    return value;
  }
}
`;

const numbered = code
  .split("\n")
  .map((line, at) => `${String(at + 1).padStart(6)}\t${line}`)
  .join("\n");

const languages = {
  german:
    "Der Zug nach Oslo fährt um 7:42 Uhr von Gleis neun ab, hält in Lübeck, Kopenhagen und Göteborg und kommt, wenn nichts dazwischenkommt, gegen Mitternacht an. Die Fahrkarte kostet 129,50 Euro; Umsteigen ist nicht nötig.",
  french:
    "Le marché couvert ouvre à l'aube : poissonniers, maraîchers et fromagers installent leurs étals pendant que les premiers clients, encore ensommeillés, cherchent un café.",
  spanish:
    "¿Qué diferencia hay entre un contrato de alquiler y uno de arrendamiento financiero? Explícalo con dos ejemplos sencillos, sin términos jurídicos.",
  polish: "Zażółć gęślą jaźń. Wczoraj wieczorem padał śnieg, a dziś rano drogi były nieprzejezdne aż do południa.",
  russian:
    "Вчера мы долго спорили о том, следует ли переписать сервис целиком или заменять его по частям. Решили начать с очереди сообщений: она мала, хорошо покрыта тестами и почти не меняется.",
  greek: "Η θάλασσα ήταν ήρεμη και το πλοίο έφτασε στο λιμάνι πριν από την ανατολή του ήλιου.",
  arabic: "تقع المكتبة القديمة خلف السوق، ويزورها الطلاب كل مساء للبحث عن الكتب النادرة والمخطوطات.",
  hebrew: "הרכבת האחרונה יוצאת בחצות, ומי שמאחר צריך להמתין עד הבוקר.",
  hindi: "कल सुबह हम पहाड़ों की ओर निकलेंगे, और अगर मौसम साफ़ रहा तो शाम तक झील के किनारे पहुँच जाएँगे।",
  thai: "วันนี้อากาศดีมาก เราจึงเดินไปตลาดน้ำเพื่อซื้อผลไม้และดอกไม้สำหรับงานเลี้ยงตอนเย็น",
  chinese:
    "请把下面的会议记录整理成三个要点：第一，项目进度比计划晚了两周；第二，测试环境的数据库需要扩容；第三，下个月开始每周五进行代码评审。",
  japanese:
    "昨日の夕方、駅前の古い喫茶店で友人と会いました。窓から見える川は夕日に染まり、私たちは将来の仕事について二時間ほど話しました。",
  korean: "서버를 재시작하기 전에 설정 파일을 백업하고, 진행 중인 요청이 모두 끝났는지 로그로 확인해 주세요.",
  emoji: "The release went out 🚀 and nothing broke 🎉👏🏽 – except for the clock 🕰️ in the 🏴󠁧󠁢󠁳󠁣󠁴󠁿 office 🤷‍♀️.",
};

const everything = Object.values(languages).join("\n\n");

export const corpus: Case[] = [
  { name: "foo", messages: [user("foo")] },
  {
    name: "a question, with instructions",
    system: "You answer in one sentence.",
    messages: [user("Why is the sky blue?")],
  },
  {
    name: "a conversation",
    system: [
      { type: "text", text: "You are a librarian." },
      { type: "text", text: "You know every book." },
    ],
    messages: [
      user("Which novel begins with a whale?"),
      assistant("Strictly speaking, none that I know begins with one; the one you mean begins with a name."),
      user([
        { type: "text", text: "Then which one begins with a name?" },
        { type: "text", text: "And who wrote it?" },
      ]),
    ],
  },
  ...Object.entries(languages).map(([name, text]): Case => ({ name, messages: [user(text)] })),
  { name: "every language, at length", messages: [user(`${everything}\n\n${everything}\n\n${everything}`)] },
  { name: "code", messages: [user(`What is wrong here?\n\n\`\`\`ts\n${code}\`\`\``)] },
  {
    name: "data",
    messages: [
      user(
        JSON.stringify(
          Array.from({ length: 40 }, (_, at) => ({
            id: `ord_${(at * 7919 + 104729).toString(36)}`,
            total_cents: at * 1234 + 99,
            placed_at: `2026-11-${String((at % 28) + 1).padStart(2, "0")}T0${at % 10}:15:00.000Z`,
            lines: [{ sku: `A-${1000 + at}`, count: at % 7, gift: at % 2 === 0 }],
          })),
        ),
      ),
    ],
  },
  { name: "one tool", messages: [user("What time is it?")], tools: [now] },
  { name: "an agent's tools", messages: [user("List the files.")], tools: agentTools },
  { name: "an agent's beginning", system: agentSystem, messages: [user("Fix the failing test.")], tools: agentTools },
  {
    name: "an agent at work",
    system: agentSystem,
    messages: [
      user("The cache never expires. Find out why, and mend it."),
      assistant([
        { type: "text", text: "I will look at the cache and at its tests." },
        called("toolu_1", "ReadFile", { path: "/home/user/project/src/cache.ts" }),
        called("toolu_2", "Search", { pattern: "new Cache\\(", output: "lines", glob: "test/**/*.ts" }),
      ]),
      user([
        result("toolu_1", numbered),
        result("toolu_2", [{ type: "text", text: "test/cache.test.ts:12:  const cache = new Cache(60, () => time);" }]),
      ]),
      assistant([
        called("toolu_3", "Shell", {
          command: "npm test -- test/cache.test.ts",
          description: "Run the tests of the cache",
        }),
      ]),
      user([result("toolu_3", "error: expected 2 computations, but there was 1\n  at test/cache.test.ts:19:5", true)]),
    ],
    tools: agentTools,
  },
  {
    name: "an agent at work, in Japanese",
    system: `${agentSystem}\n\n${languages.japanese}`,
    messages: [
      user(languages.japanese),
      assistant([called("toolu_1", "TodoWrite", { todos: [{ content: "設定ファイルを読む", status: "pending" }] })]),
      user([result("toolu_1", "保存しました。")]),
      assistant("設定を確認しました。次に何をしますか。"),
      user("テストを実行してください。"),
    ],
    tools: agentTools,
  },
];
