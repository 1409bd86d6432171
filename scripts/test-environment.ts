// The environment variables of test runs: the URLs of a real Postgres and Redis that are started once, and no settings
// of the user who runs the tests.

import { type Service, startPostgres, startRedis } from "../test/harness/services.ts";

export type Environment = Record<string, string | undefined>;

/**
 * Variables with the URLs of the tests' services, without any variable that could point tests to real services of the
 * user.
 */
export async function environmentWith(services: Service[]): Promise<Environment> {
  const { DATABASE_URL, REDIS_URL, TEST_DATABASE_URL, TEST_REDIS_URL } = process.env;
  const started = async (start: () => Promise<Service>) => {
    const service = await start();
    services.push(service);
    return service.url;
  };
  const [database, redis] = await Promise.all([
    TEST_DATABASE_URL || DATABASE_URL || started(startPostgres),
    TEST_REDIS_URL || REDIS_URL || started(startRedis),
  ]);
  const own = Object.keys(process.env).filter((name) => name.startsWith("SLUICE_"));
  const cleared = ["DATABASE_URL", "REDIS_URL", "PORT", "HOST", ...own].map((name) => [name, undefined]);
  return { ...Object.fromEntries(cleared), TEST_DATABASE_URL: database, TEST_REDIS_URL: redis };
}
