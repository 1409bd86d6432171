/**
 * The pages with charts, and the chart of spend on the page of a single team, person or key. They are bundled into one
 * file, which is loaded later than the other pages (later.tsx).
 */
export { EnginePage } from "./pages/engine.tsx";
export { EnginesPage } from "./pages/engines.tsx";
export { ModelPage, ModelsPage } from "./pages/models.tsx";
export { UsagePage } from "./pages/usage.tsx";
export { SubjectSpend } from "./parts/subject-spend.tsx";
