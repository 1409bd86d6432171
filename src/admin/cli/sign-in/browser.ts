/** Opens pages in the browser of this user's desktop. */
import type { Services } from "../services.ts";

type Seat = Pick<Services, "environment" | "terminal">;

/**
 * Opens a page in the browser of the user's desktop. False: there is no desktop, or this program's output does not go
 * to a screen.
 */
export function openedInBrowser({ environment, terminal }: Seat, url: string, platform = process.platform): boolean {
  if (terminal.width === null) return false;
  const program = openerOf(environment, platform);
  if (program === null) return false;
  // The URL is a separate argument and passes through no shell, so nothing in it can run as a command.
  Bun.spawn([program, url], { env: environment, stdin: "ignore", stdout: "ignore", stderr: "ignore" }).unref();
  return true;
}

function openerOf(environment: Services["environment"], platform: string): string | null {
  const found = (name: string) => Bun.which(name, { PATH: environment.PATH ?? "" });
  // In a session by SSH, the user's desktop is on another machine.
  if (environment.SSH_CONNECTION) return null;
  if (platform === "darwin") return found("open");
  return environment.DISPLAY || environment.WAYLAND_DISPLAY ? found("xdg-open") : null;
}
