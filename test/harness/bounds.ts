// Bounds of a machine that has plenty of everything.

import { type Bounds, bounds } from "../../src/http/bounds.ts";

export function plentifulBounds(): Bounds {
  const limits = {
    ...{ memory_bytes: 1e12, descriptors_max: null, body_bytes_max: 1e9 },
    ...{
      in_flight_bytes_max: 0,
      key_in_flight_bytes_max: 0,
      websocket_frame_bytes_max: 1e6,
      trustedProxies: [],
      clientAddressHeader: "x-forwarded-for",
    },
  };
  const machine = { residentBytes: () => 0, collect() {}, collectNew() {}, lowestFreeDescriptor: () => 0 };
  return bounds(limits, machine, () => true);
}
