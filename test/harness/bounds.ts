// The service's bounds on a machine that has plenty of memory and file descriptors.

import { type Bounds, bounds } from "../../src/core/http/bounds.ts";

export function plentifulBounds(changed: { item_cache_bytes_max?: number } = {}): Bounds {
  const limits = {
    ...{ memory_bytes: 1e12, descriptors_max: null, body_bytes_max: 1e9 },
    ...{
      in_flight_bytes_max: 0,
      key_in_flight_bytes_max: 0,
      item_cache_bytes_max: 1e8,
      websocket_frame_bytes_max: 1e6,
      trustedProxies: [],
      clientAddressHeader: "x-forwarded-for",
    },
    ...changed,
  };
  const machine = { residentBytes: () => 0, collect() {}, collectNew() {}, lowestFreeDescriptor: () => 0 };
  return bounds(limits, machine, () => true);
}
