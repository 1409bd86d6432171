/**
 * The lasting secret of a sign-in (a refresh token or a key), which is in the sign-in's file or in the system's key
 * store.
 */

import { shellWord } from "../../management/shell-word.ts";
import type { Services } from "../services.ts";
import { type KeyStore, KeyStoreAway, systemKeyStore } from "./key-store.ts";

/** The secret itself, or the id of its entry in the key store. */
export type KeptSecret = string | { store: "system"; id: string };

export const storeNames = ["file", "system"] as const;
export type StoreName = (typeof storeNames)[number];

export const isInSystem = (secret: KeptSecret | null) => secret !== null && typeof secret !== "string";

/**
 * The key store for a new sign-in, after a test write and read; null: the secret stays in the sign-in's file. If the
 * user has not chosen, the system's key store is used if it works, else the file. Throws an Error if the chosen key
 * store does not work.
 */
export async function storeFor(services: Services, typed: StoreName | undefined): Promise<KeyStore | null> {
  const { environment, terminal } = services;
  const chosen = typed ?? chosenIn(environment);
  if (chosen === "file") return null;
  const store = systemKeyStore(environment);
  const inFile = "To keep the sign-in in a file that only you can read: --store file";
  if (typeof store === "string") {
    if (chosen === "system") throw new Error(`There is no key store that can be used: ${store}. ${inFile}`);
    return null;
  }
  try {
    await tried(store, services.newUuid());
    return store;
  } catch (cause) {
    if (!(cause instanceof KeyStoreAway)) throw cause;
    if (chosen === "system")
      throw new Error(`Not kept in ${store.name}: ${cause.message}. Unlock it. ${inFile}`, { cause });
    terminal.err(`sluice: ${store.name} cannot be used (${cause.message}): the sign-in is kept in a file.\n`);
    return null;
  }
}

function chosenIn({ SLUICE_TOKEN_STORE }: Services["environment"]): StoreName | undefined {
  const word = SLUICE_TOKEN_STORE?.trim();
  if (!word) return undefined;
  const chosen = storeNames.find((name) => name === word);
  if (chosen === undefined) throw new Error(`SLUICE_TOKEN_STORE is '${word}'. Set it to ${storeNames.join(" or ")}.`);
  return chosen;
}

/**
 * Tests the key store by writing, reading and removing an entry: it may be locked, or may not return the stored secret.
 */
async function tried(store: KeyStore, id: string): Promise<void> {
  await store.put(id, "Sluice: a trial", id);
  const got = await store.get(id);
  await store.remove(id);
  if (got !== id) throw new KeyStoreAway("it did not keep a trial entry");
}

/** Puts the secret into the key store. `id`: the ID of the entry to replace, or a new ID. */
export async function hidden(store: KeyStore, id: string, url: string, secret: string): Promise<KeptSecret> {
  await store.put(id, `Sluice: ${url}`, secret);
  return { store: "system", id };
}

/**
 * The secret in plain text. Throws KeyStoreAway if the key store fails, and an Error if it no longer has the secret.
 */
export async function revealed({ environment }: Services, url: string, secret: KeptSecret): Promise<string> {
  if (typeof secret === "string") return secret;
  const store = systemKeyStore(environment);
  if (typeof store === "string") throw away(url, store);
  const found = await store.get(secret.id).catch((cause) => {
    throw cause instanceof KeyStoreAway ? away(url, cause.message) : cause;
  });
  if (found !== null) return found;
  throw new Error(`${store.name} no longer has your sign-in at ${url}. Run: sluice login ${shellWord(url)}`);
}

const away = (url: string, why: string) =>
  new KeyStoreAway(
    `Your sign-in at ${url} is in the system's key store, which cannot be used here: ${why}. Unlock it, or run: sluice login ${shellWord(url)} --store file`,
  );

/**
 * Replaces the secret in the key store; a secret in a file stays in the file. Null: the key store failed to store it.
 */
export async function replaced(
  { environment, terminal }: Services,
  url: string,
  before: KeptSecret,
  secret: string,
): Promise<KeptSecret | null> {
  if (typeof before === "string") return secret;
  const store = systemKeyStore(environment);
  try {
    if (typeof store === "string") throw new KeyStoreAway(store);
    return await hidden(store, before.id, url, secret);
  } catch (cause) {
    if (!(cause instanceof KeyStoreAway)) throw cause;
    terminal.err(
      `sluice: The system's key store did not take your new refresh token (${cause.message}). This sign-in ends within the hour; then run: sluice login ${shellWord(url)}\n`,
    );
    return null;
  }
}

/** Removes the secret from the key store; a secret in a file is removed with the file. */
export async function forgotten({ environment, terminal }: Services, url: string, secret: KeptSecret | null) {
  if (secret === null || typeof secret === "string") return;
  try {
    const store = systemKeyStore(environment);
    if (typeof store === "string") throw new KeyStoreAway(store);
    await store.remove(secret.id);
  } catch (cause) {
    if (!(cause instanceof KeyStoreAway)) throw cause;
    terminal.err(
      `sluice: The system's key store still has an entry 'Sluice: ${url}' (${cause.message}). Delete it there.\n`,
    );
  }
}
