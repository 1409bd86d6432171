/**
 * The pages with charts, and the chart of the spend on one page's thing: one file, which is loaded when the first of
 * them is opened.
 */
export { EnginePage } from "./pages/engine.tsx";
export { EnginesPage } from "./pages/engines.tsx";
export { ModelPage, ModelsPage } from "./pages/models.tsx";
export { UsagePage } from "./pages/usage.tsx";
export { SubjectSpend } from "./parts/subject-spend.tsx";
