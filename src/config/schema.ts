/**
 * sluice.yaml as one typebox value: validation, static type, and the JSON Schema that editors complete from
 * (sluice.schema.json). Names of fields never change: docs/design/service.md, The catalog.
 *
 * Two annotations steer the reader's words: `patternErrorMessage` says a pattern in human words (editors show it too),
 * and `writeOnly` marks what must never be shown.
 */

import Type, { type Static } from "typebox";
import { Model } from "./schema/model.ts";
import { Plan } from "./schema/plan.ts";
import {
  images,
  limits,
  log,
  Metering,
  messages,
  metrics,
  reload,
  reports,
  responses,
  server,
  telemetry,
  webhooks,
} from "./schema/service.ts";
import { Upstream } from "./schema/upstream.ts";
import { closed, named } from "./schema/values.ts";

export const ConfigurationFile = Type.Object(
  {
    server: Type.Optional(server),
    upstreams: Type.Optional(
      named(Upstream, { maxProperties: 256, description: "The engines, by a name that clients do not see." }),
    ),
    models: Type.Optional(
      Type.Array(Model, {
        minItems: 1,
        maxItems: 1000,
        description: "The public models. They replace the whole default catalog.",
      }),
    ),
    plans: Type.Optional(
      named(Plan, {
        maxProperties: 1000,
        description:
          "What organizations may use, by name. They are added to starter, pro and unlimited, or replace them.",
      }),
    ),
    metering: Type.Optional(Metering),
    limits: Type.Optional(limits),
    messages: Type.Optional(messages),
    responses: Type.Optional(responses),
    reload: Type.Optional(reload),
    log: Type.Optional(log),
    metrics: Type.Optional(metrics),
    telemetry: Type.Optional(telemetry),
    images: Type.Optional(images),
    reports: Type.Optional(reports),
    webhooks: Type.Optional(webhooks),
  },
  { ...closed, title: "sluice.yaml", description: "The configuration of Sluice: engines, models, plans, and limits." },
);
export type ConfigurationFile = Static<typeof ConfigurationFile>;

/** sluice.schema.json, as it is checked in and as `sluice init` writes it beside a new file. */
export function schemaText(): string {
  return `${JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...ConfigurationFile }, null, 2)}\n`;
}
