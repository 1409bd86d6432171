/** Numbers and amounts of money. The short form has all digits on hover. */
import { percent } from "../core/format.ts";
import { type Money as Amount, exactly, moneyWritten } from "../core/money.ts";

export function Money({ of, none = "–" }: { of: Amount | null | undefined; none?: string }) {
  if (of === null || of === undefined) return <>{none}</>;
  return <span title={exactly(of)}>{moneyWritten(of)}</span>;
}

interface Props {
  used: number;
  held?: number;
  limit: number;
  label: string;
  /** Whether the value is only a part of a whole, not the use of a limit that may need attention. */
  isPart?: boolean;
}

/** A bar with the used share of a limit, and the share held by running requests. */
export function Bar({ used, held = 0, limit, label, isPart = false }: Props) {
  // `used` may be negative: an adjustment may subtract more than was used.
  const share = limit === 0 ? 100 : Math.min(100, Math.max(0, (used / limit) * 100));
  const reserved = limit === 0 ? 0 : Math.min(100 - share, (held / limit) * 100);
  const tone = isPart || share < 75 ? "calm" : share < 95 ? "warn" : "bad";
  return (
    <svg
      class={`bar ${tone}`}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${percent(share)}`}
    >
      <rect class="whole" width="100" height="6" />
      <rect class="used" width={share} height="6" />
      <rect class="held" x={share} width={reserved} height="6" />
    </svg>
  );
}
