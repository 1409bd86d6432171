"""Prints the result of a script of these tests."""

import unittest


def main() -> int:
    """Runs the tests, and prints the counts in the format of `bun test`, so that one parser reads both."""
    result = unittest.main(exit=False, verbosity=2).result
    failed, skipped = len(result.failures + result.errors), len(result.skipped)
    print(f" {max(0, result.testsRun - failed - skipped)} pass\n {failed} fail\n {skipped} skip", flush=True)
    return 0 if result.wasSuccessful() else 1
