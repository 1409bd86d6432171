// The TypeScript compiler as a service: it returns syntax trees of the product's files, and checks whether changed
// files compile.

import { join } from "node:path";
import type { SourceFile } from "typescript/unstable/ast";
import { API, type Snapshot } from "typescript/unstable/async";

/**
 * The codes of errors about unused declarations and unreachable code, which are ignored because a mutant may have them.
 */
const lint = new Set([6133, 6192, 6196, 6198, 7027]);

export interface Compiler extends AsyncDisposable {
  tree(file: string): Promise<SourceFile>;
  /** Returns the files of `texts` that compile with these contents. All are checked together, which is much faster. */
  takes(texts: ReadonlyMap<string, string>): Promise<Set<string>>;
}

/** Starts the compiler for the project in this folder, with its current files. */
export async function compiler(root: string): Promise<Compiler> {
  const config = join(root, "tsconfig.json");
  let changed = new Map<string, string>();
  const api = new API({ cwd: root, fs: { readFile: (path) => changed.get(path) } });
  const pristine = await api.updateSnapshot({ openProjects: [config] });
  return {
    async tree(file) {
      const tree = await projectOf(pristine).program.getSourceFile(join(root, file));
      if (!tree) throw new Error(`${file} is not part of the project.`);
      return tree;
    },
    async takes(texts) {
      if (texts.size === 0) return new Set();
      const before = [...changed.keys()];
      changed = new Map([...texts].map(([file, text]) => [join(root, file), text]));
      const snapshot = await api.updateSnapshot({ fileChanges: { changed: [...before, ...changed.keys()] } });
      const { program } = projectOf(snapshot);
      const taken = new Set<string>();
      for (const file of texts.keys()) {
        const path = join(root, file);
        const problems = [
          ...(await program.getSyntacticDiagnostics(path)),
          ...(await program.getSemanticDiagnostics(path)),
        ];
        if (problems.every(({ code }) => lint.has(code))) taken.add(file);
      }
      await snapshot.dispose();
      return taken;
    },
    async [Symbol.asyncDispose]() {
      await api.close();
    },
  };

  function projectOf(snapshot: Snapshot) {
    const project = snapshot.getProject(config) ?? snapshot.getProjects()[0];
    if (!project) throw new Error(`There is no project in ${root}.`);
    return project;
  }
}
