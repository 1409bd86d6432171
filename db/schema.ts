/**
 * The tables and columns that queries of Drizzle read and write. The migrations create them, and others that only SQL
 * texts name; a test compares these definitions with the migrations.
 */
export * from "./schema/administration.ts";
export * from "./schema/organizations.ts";
export * from "./schema/people.ts";
export * from "./schema/usage.ts";
