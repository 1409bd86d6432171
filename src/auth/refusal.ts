/** An administrator asked for something that cannot be: the message says why, and what would do. Not a defect, not an outage. */
export class Refusal extends Error {
  override name = "Refusal";
}
