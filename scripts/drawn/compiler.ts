// TypeScript as a service: syntax trees of the product's files, and whether the compiler takes a changed one.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SourceFile } from "typescript/unstable/ast";
import { API } from "typescript/unstable/async";

/** What is declared and never read: a matter of taste, and so is a line that is never reached. */
const lint = new Set([6133, 6192, 6196, 6198, 7027]);

export interface Compiler extends AsyncDisposable {
  tree(file: string): Promise<SourceFile>;
  /** Whether the file would still compile with this text. */
  takes(file: string, text: string): Promise<boolean>;
}

/** Of the project in this folder, as it stands now. */
export async function compiler(root: string): Promise<Compiler> {
  const config = join(root, "tsconfig.json");
  let changed: { path: string; text: string } | null = null;
  const api = new API({
    cwd: root,
    fs: { readFile: (path) => (changed !== null && path === changed.path ? changed.text : undefined) },
  });
  const projectOf = async (params: Parameters<typeof api.updateSnapshot>[0]) => {
    const snapshot = await api.updateSnapshot(params);
    const project = snapshot.getProject(config) ?? snapshot.getProjects()[0];
    if (!project) throw new Error(`There is no project in ${root}.`);
    return project;
  };
  const pristine = await projectOf({ openProjects: [config] });
  return {
    async tree(file) {
      const tree = await pristine.program.getSourceFile(join(root, file));
      if (!tree) throw new Error(`${file} is not part of the project.`);
      return tree;
    },
    async takes(file, text) {
      const path = join(root, file);
      changed = { path, text };
      const project = await projectOf({ fileChanges: { changed: [path] } });
      const problems = [
        ...(await project.program.getSyntacticDiagnostics(path)),
        ...(await project.program.getSemanticDiagnostics(path)),
      ];
      changed = { path, text: readFileSync(path, "utf8") };
      await projectOf({ fileChanges: { changed: [path] } });
      changed = null;
      return problems.every(({ code }) => lint.has(code));
    },
    async [Symbol.asyncDispose]() {
      await api.close();
    },
  };
}
