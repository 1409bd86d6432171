/** The shape of a Messages request for a model with `bounds: engine`: names of tools as engines take them, such as `server.tool`. */
import Type from "typebox";
import { engineName, list, optional } from "../../shapes/contract.ts";
import { MessagesRequest, MessagesTool } from "../contract.ts";

export const EngineBoundMessages = Type.Object({
  ...MessagesRequest.properties,
  tools: optional(list(Type.Object({ ...MessagesTool.properties, name: optional(engineName) }))),
});
