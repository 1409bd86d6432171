"""How a script of these tests ends."""

import unittest


def main() -> int:
    """The counts in the form of `bun test`, so that one reader serves both."""
    result = unittest.main(exit=False, verbosity=2).result
    failed, skipped = len(result.failures + result.errors), len(result.skipped)
    print(f" {max(0, result.testsRun - failed - skipped)} pass\n {failed} fail\n {skipped} skip", flush=True)
    return 0 if result.wasSuccessful() else 1
