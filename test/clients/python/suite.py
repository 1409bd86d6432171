"""What the scripts of these tests share: the models, the messages, the engine's counts, and the printed result."""

import json
import os
import unittest
import urllib.request

MODEL = "acme/writer-1"
PLAIN_MODEL = "acme/plain-1"


def says(directives: str, text: str = "hello there") -> list:
    return [{"role": "user", "content": f"[simulator: {directives}] {text}" if directives else text}]


def words(count: int) -> str:
    return " ".join(["hello"] * count)


def counts() -> dict:
    with urllib.request.urlopen(os.environ["ENGINE_COUNTS_URL"]) as answer:
        return json.load(answer)


def main() -> int:
    """Runs the tests, and prints the counts in the format of `bun test`, so that one parser reads both."""
    result = unittest.main(exit=False, verbosity=2).result
    failed, skipped = len(result.failures + result.errors), len(result.skipped)
    print(f" {max(0, result.testsRun - failed - skipped)} pass\n {failed} fail\n {skipped} skip", flush=True)
    return 0 if result.wasSuccessful() else 1
