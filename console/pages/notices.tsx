/** Where notices are sent: those of the fleet to operators, and those of every organization. */
import { useState } from "preact/hooks";
import { AddDestination, Destinations } from "../parts/notices.tsx";
import { Page } from "../parts/section.tsx";

export function NoticesPage() {
  const [turn, setTurn] = useState(0);
  const add = <AddDestination organization={null} done={() => setTurn(turn + 1)} />;
  return (
    <Page title="Notices" aside={add}>
      <Destinations key={turn} organization={null} />
    </Page>
  );
}
