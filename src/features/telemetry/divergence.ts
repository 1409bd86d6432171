/**
 * Compares engines' usage reports with our count of the same answers: reported ÷ counted output tokens of recent
 * answers, by model. It shows an operator an engine that miscounts even though its reports are accepted.
 */

const answers_remembered = 256;

/**
 * Makes an empty comparison. `models_max`: the most models; beyond it, the model that was used longest ago is
 * forgotten.
 */
export function divergence(models_max = 1000) {
  const models = new Map<string, { ratios: number[]; next: number }>();
  return {
    observe(model: string, ratio: number): void {
      const known = models.get(model) ?? { ratios: [], next: 0 };
      known.ratios[known.next] = ratio;
      known.next = (known.next + 1) % answers_remembered;
      models.delete(model);
      if (models.size >= models_max) models.delete(models.keys().next().value!);
      models.set(model, known);
    },
    /** The 50th and the 99th percentile of reported ÷ counted output tokens, for each model. */
    read() {
      return [...models].flatMap(([model, { ratios }]) => {
        const sorted = ratios.toSorted((a, b) => a - b);
        const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
        return [
          { model, quantile: "0.5" as const, ratio: at(0.5) },
          { model, quantile: "0.99" as const, ratio: at(0.99) },
        ];
      });
    },
  };
}
