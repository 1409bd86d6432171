/** A TEAM: a named group of keys in an organization, as the store and the verbs of management return it. Pure. */
import Type from "typebox";
import { count } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { id, instant, version } from "./shapes.ts";

export const teamFields = {
  id: id("team"),
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug.", examples: ["acme"] }),
  name: Type.String({ description: "Unique in its organization.", examples: ["research"] }),
  keys: count(),
  created_at: instant("When it was created."),
  version: version(),
};

const StoredTeam = Type.Object(teamFields);
export type StoredTeam = Value<typeof StoredTeam>;

export type TeamChange = Partial<Pick<StoredTeam, "name">>;
