// `npm run console:tasks`: does ten typical tasks of console users in a real browser, each from the first page after
// the sign-in, on a node with a company of 30 people and six weeks of requests. Prints how many clicks, fields and
// seconds each task takes, by mouse and by keyboard alone. Also prints the problems that axe and the browser's log
// report, and problems of the focus order.

import { launchBrowser, noBrowser } from "../test/admin/console/chromium.ts";
import { startCompany } from "../test/admin/console/company.ts";
import { clicks_max, type Performed, performed, tasks } from "../test/admin/console/tasks.ts";

async function main(): Promise<void> {
  if (noBrowser !== null) {
    console.log(`skipped: ${noBrowser}`);
    return;
  }
  const [company, browser] = await Promise.all([startCompany(), launchBrowser()]);
  const problems: string[] = [];
  console.log("task | clicks | fields | seconds | keys Tab | seconds by keyboard");
  for (const task of tasks) {
    const mouse = await performed(task, { company, browser, by: "mouse", looksAtPages: true });
    const keyboard = await performed(task, { company, browser, by: "keyboard" });
    console.log(lineOf(mouse, keyboard));
    problems.push(...[...mouse.problems, ...keyboard.problems].map((one) => `${task.name}: ${one}`));
    if (mouse.clicks > clicks_max) problems.push(`${task.name}: ${mouse.clicks} clicks`);
  }
  await browser.close();
  await company.close();
  for (const problem of problems) console.log(problem);
  console.log(`${tasks.length} tasks, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

const seconds = ({ ms }: Performed) => (ms / 1000).toFixed(1);

function lineOf(mouse: Performed, keyboard: Performed): string {
  const fields = mouse.filled.map(({ label, text }) => `${label}: ${text}`).join(", ") || "–";
  return [mouse.name, mouse.clicks, fields, seconds(mouse), keyboard.steps, seconds(keyboard)].join(" | ");
}

await main();
