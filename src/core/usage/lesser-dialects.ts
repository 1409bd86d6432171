/** Remembers for an hour which routes refused a field that is not essential, so that it is not sent to them again. */
import type { Dialect } from "../protocol/dialect.ts";
import type { Route } from "../routing/catalog.ts";
import type { Upstream } from "../upstream/target.ts";

const remembered_ms = 3_600_000;

export class LesserDialects {
  /**
   * The dialects by upstream, then by the engine's name for the model. A reload makes new upstreams, and so forgets.
   */
  readonly #found = new WeakMap<Upstream, Map<string, { dialect: Dialect; until_ms: number }>>();

  learned({ upstream, model }: Pick<Route, "upstream" | "model">, dialect: Dialect, now_ms: number): void {
    const models = this.#found.get(upstream) ?? new Map<string, { dialect: Dialect; until_ms: number }>();
    models.set(model, { dialect, until_ms: now_ms + remembered_ms });
    this.#found.set(upstream, models);
  }

  /** The dialect in which to ask the route; undefined for a generic one. */
  of({ upstream, model }: Pick<Route, "upstream" | "model">, now_ms: number): Dialect | undefined {
    const found = this.#found.get(upstream)?.get(model);
    return found && now_ms < found.until_ms ? found.dialect : upstream.dialect;
  }
}
