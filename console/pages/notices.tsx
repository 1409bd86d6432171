/** Where notices are sent: those of the fleet to operators, and those of every organization. */
import { Destinations } from "../parts/notices.tsx";
import { Page } from "../parts/section.tsx";

export function NoticesPage() {
  return (
    <Page title="Notices">
      <Destinations organization={null} />
    </Page>
  );
}
