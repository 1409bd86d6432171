/** The schema of the configuration in force, as it may be shown: without secrets. */
import Type from "typebox";
import { modelKinds } from "../../core/inference/model.ts";
import { ModelPrices } from "../../core/operations/shapes.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { instant } from "../store/shapes.ts";

const whole = () => Type.Integer({ minimum: 0 });

export const ShownConfiguration = Type.Object(
  {
    hash: Type.String({ description: "The same on all nodes with the same settings." }),
    settings: Type.Record(Type.String(), Type.Unknown(), {
      description: "Sections of `sluice.yaml` that have no secrets, with the defaults: docs/configuration.md.",
    }),
    server: Type.Object({
      host: Type.String(),
      port: Type.Integer(),
      operator_port: nullable(Type.Integer()),
      console_port: nullable(Type.Integer()),
      workers: Type.Unknown({ description: "A number, or `auto`." }),
      has_tls: Type.Boolean(),
      trusted_proxies: Type.Array(Type.String()),
    }),
    storage: Type.Object({ database: Type.String(), has_redis: Type.Boolean() }),
    models: Type.Array(
      Type.Object({
        id: Type.String(),
        kind: oneOf([...modelKinds]),
        aliases: Type.Array(Type.String()),
        context_tokens: whole(),
        output_tokens_limit: whole(),
        capabilities: Type.Array(Type.String()),
        prices: ModelPrices,
        retires_at: nullable(instant("From then on it is not served.")),
        replaced_by: nullable(Type.String()),
        routes: Type.Array(
          Type.Object({ upstream: Type.String(), model: Type.String(), priority: whole(), weight: whole() }),
        ),
      }),
    ),
    upstreams: Type.Array(
      Type.Object({
        name: Type.String(),
        url: Type.String(),
        protocol: Type.String(),
        has_key: Type.Boolean(),
        headers: Type.Array(Type.String(), { description: "Their names." }),
        settings: Type.Record(Type.String(), Type.Unknown(), { description: "Timeouts, capacity, checks and load." }),
      }),
    ),
    identity: nullable(
      Type.Object({
        service_url: nullable(Type.String()),
        console_url: nullable(Type.String()),
        issuers: Type.Array(
          Type.Object({
            issuer: Type.String(),
            client_id: nullable(Type.String()),
            has_client_secret: Type.Boolean(),
            audiences: Type.Array(Type.String()),
          }),
        ),
        rules: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
          description: "In the order in which they count.",
        }),
      }),
    ),
    smtp: nullable(
      Type.Object(
        {
          host: Type.String(),
          port: nullable(Type.Integer()),
          tls: oneOf(["starttls", "implicit", "off"]),
          user: nullable(Type.String()),
          has_password: Type.Boolean(),
          from: Type.String(),
          from_name: Type.String(),
          recipient_domains: Type.Array(Type.String()),
        },
        { description: "The server of mail. Null: the service sends none." },
      ),
    ),
    notices: Type.Array(Type.String(), { description: "Warnings." }),
  },
  { $id: "Configuration" },
);
export type ShownConfiguration = Value<typeof ShownConfiguration>;
