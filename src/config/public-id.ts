/** Makes public ids, vendor/model_name, from engines' names of models, such as `qwen3:8b` or `/models/phi-4.gguf`. */

/** The public ids of the models, in the order of their names, all different. */
export function publicIds(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    const id = publicId(name);
    let unique = id;
    for (let number = 2; taken.has(unique); number++) unique = `${id.slice(0, 240)}-${number}`;
    taken.add(unique);
    return unique;
  });
}

function publicId(name: string): string {
  const parts = name.replaceAll("\\", "/").split("/").filter(Boolean);
  const file = /\.(gguf|safetensors|bin)$/i;
  const model = cleaned((parts.at(-1) ?? "").replace(file, ""), /[^A-Za-z0-9._:@+-]+/g, 180) || "model";
  // A file's path on the engine's machine does not name the maker of a model.
  const isPath = name.startsWith("/") || file.test(name);
  const vendor = isPath ? "" : cleaned(parts.at(-2) ?? "", /[^A-Za-z0-9._-]+/g, 60);
  return `${vendor || vendorOf(model)}/${model}`;
}

function cleaned(text: string, forbidden: RegExp, length_max: number): string {
  return text
    .replaceAll(forbidden, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, length_max);
}

function vendorOf(model: string): string {
  const name = model.toLowerCase();
  return families.find(([family]) => name.startsWith(family))?.[1] ?? "local";
}

const families: readonly [family: string, vendor: string][] = [
  ["llama", "meta-llama"],
  ["meta-llama", "meta-llama"],
  ["qwen", "qwen"],
  ["qwq", "qwen"],
  ["mistral", "mistralai"],
  ["mixtral", "mistralai"],
  ["ministral", "mistralai"],
  ["magistral", "mistralai"],
  ["devstral", "mistralai"],
  ["codestral", "mistralai"],
  ["pixtral", "mistralai"],
  ["voxtral", "mistralai"],
  ["gemma", "google"],
  ["deepseek", "deepseek"],
  ["phi", "microsoft"],
  ["gpt", "openai"],
  ["glm", "z-ai"],
  ["kimi", "moonshotai"],
  ["olmo", "allenai"],
  ["granite", "ibm-granite"],
  ["command", "cohere"],
  ["nemotron", "nvidia"],
  ["claude", "anthropic"],
  ["smollm", "huggingfacetb"],
];
