/** The tables, as Drizzle knows them: the one place that knows column names. The migrations make them; a test compares. */
export * from "./schema/administration.ts";
export * from "./schema/books.ts";
export * from "./schema/fleet.ts";
export * from "./schema/organizations.ts";
export * from "./schema/people.ts";
export * from "./schema/responses.ts";
export * from "./schema/sign-ins.ts";
export * from "./schema/usage.ts";
