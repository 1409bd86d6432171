// The environment in which tests run: a real Postgres and a real Redis, started once, and no setting of whoever runs the
// tests.

import { type Service, startPostgres, startRedis } from "../test/harness/services.ts";

export type Environment = Record<string, string | undefined>;

/** The addresses of the tests' services, and nothing that could lead the tests to somebody's real ones. */
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
