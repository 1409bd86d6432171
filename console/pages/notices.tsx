/** Where notices are sent: those of the fleet to operators, and those of every organization. */
import { AddDestination, Destinations } from "../parts/notices.tsx";
import { Page } from "../parts/section.tsx";

export function NoticesPage() {
  return (
    <Page title="Notices" aside={<AddDestination organization={null} />}>
      <Destinations organization={null} />
    </Page>
  );
}
