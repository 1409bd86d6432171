// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tests need `${…}` in plain strings
import { describe, expect, test } from "bun:test";
import { configured, load, problemsOf, withModel } from "./reading.ts";

describe("an environment variable in sluice.yaml", () => {
  const file = (key: string) => `upstreams: { main: { url: "http://127.0.0.1:9000", api_key: ${key} } }`;

  test("takes the place of its name, anywhere in a text, and spaces around a key are cut off", () => {
    const { upstreams } = configured(file('"pre-${KEY}"'), { KEY: "slumber\n" });
    expect(upstreams[0]?.apiKey).toBe("pre-slumber");
    const host = configured("upstreams:\n  main:\n    url: http://${HOST_NAME}:9000/v1", { HOST_NAME: "engine" });
    expect(host.upstreams[0]?.url).toBe("http://engine:9000/v1");
  });

  test("$${ stands for the characters themselves, and a value is not looked through again", () => {
    expect(configured(file('"$${KEY}"')).upstreams[0]?.apiKey).toBe("${KEY}");
    expect(configured(file('"${KEY}"'), { KEY: "${OTHER}", OTHER: "x" }).upstreams[0]?.apiKey).toBe("${OTHER}");
  });

  test.each([
    ['"${KEY}"', {}, "needs the environment variable KEY, which is not set"],
    ['"${KEY}"', { KEY: "" }, "needs the environment variable KEY, which is empty"],
    ['"${constructor}"', {}, "needs the environment variable constructor, which is not set"],
    ['"${KEY"', {}, "has a ${ without a closing }; for a literal ${, write $${"],
    ['"${}"', {}, "has a ${…} without the name of an environment variable (letters, digits and _)"],
    ['"${KEY:-none}"', {}, "has a ${…} without the name of an environment variable (letters, digits and _)"],
    ["$KEY", {}, 'must name its variable in braces: "${KEY}"'],
    ['"   "', {}, "is empty"],
    ["12345", {}, "must be text of 1 to 4096 characters; put it in quotes"],
  ])("%s with %j is refused", (key, env, problem) => {
    expect(problemsOf(file(key), env)).toEqual([expect.stringMatching(/^1:\d+: upstreams\.main\.api_key: /)]);
    expect(problemsOf(file(key), env)[0]).toEndWith(problem);
  });

  test("without quotes inside { } it is not YAML, and the message says what to do", () => {
    expect(problemsOf(file("${KEY}"), { KEY: "x" })).toEqual(['1:62: a value with ${…} needs quotes here: "${NAME}"']);
  });

  test("its value, and a key written out, are in no message", () => {
    const secret = "hunter2-hunter2";
    const texts = [
      file('"${SECRET} and more"'),
      file(`"${secret} and more"`),
      file(`{ ${secret}: 1 }`).replace("api_key", "url"),
      'upstreams: { main: { url: "${SECRET}" } }',
      'upstreams: { main: { url: "http://a:${SECRET}@engine/v1" } }',
      'upstreams: { main: { url: "http://127.0.0.1", protocol: "${SECRET}" } }',
      withModel({ id: "${SECRET}" }),
      withModel({ routes: [{ upstream: "${SECRET}", model: "m" }] }),
      withModel({ capabilities: ["${SECRET}"] }),
      withModel({ context_window: "${SECRET}" }),
      'plans: "${SECRET}"',
      `upstreams: { main: { url: "http://127.0.0.1", api_key: @${secret} } }`,
      `upstreams: { main: { url: "http://127.0.0.1", api_key: *${secret} } }`,
      `upstreams:\n  main:\n    api_key: "${secret}\n    url: x`,
    ];
    for (const text of texts) {
      const result = load(text, { SECRET: secret });
      expect(result).toBeInstanceOf(Error);
      const said = (result as Error).message;
      if (!text.includes(`{ ${secret}: 1 }`)) expect(said).not.toContain(secret);
    }
  });
});
