// Files that `bun build` embeds: text as a string, everything else as a path that Bun.file() opens.
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.wasm" {
  const path: string;
  export default path;
}
declare module "*.data" {
  const path: string;
  export default path;
}
declare module "*.tar.gz" {
  const path: string;
  export default path;
}
declare module "*.yaml" {
  const text: string;
  export default text;
}
declare module "*/standalone.js" {
  const path: string;
  export default path;
}
declare module "*/llama3-tokenizer-with-baked-data.js" {
  const path: string;
  export default path;
}
