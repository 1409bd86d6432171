"""Tests that LiteLLM, unchanged except for base URL, key and model ID, raises its own error class for an input that is
too long.

`npm run test:clients -- litellm` runs it against the service in front of engines for which every input is too long.
Environment variables: SLUICE_URL (without /v1) and SLUICE_KEY. Models are `acme/<protocol of the engine>-refuses`,
whose engine responds with 400, and `-breaks`, whose engine fails in the middle of its response.
"""

import sys
import unittest

import litellm

from overflow_cases import BREAKS, KEY, SHORT, URL, read, refusals
from suite import main

OPENAI = {"api_key": KEY, "api_base": f"{URL}/v1", "num_retries": 0, "max_retries": 0}
ANTHROPIC = {"api_key": KEY, "api_base": URL, "num_retries": 0, "max_retries": 0}

litellm.suppress_debug_info = True


def by_chat_completions(model: str, text: str, stream: bool):
    messages = [{"role": "user", "content": text}]
    return litellm.completion(model=f"openai/{model}", messages=messages, stream=stream, **OPENAI)


def by_messages(model: str, text: str, stream: bool):
    messages = [{"role": "user", "content": text}]
    return litellm.completion(model=f"anthropic/{model}", messages=messages, stream=stream, max_tokens=64, **ANTHROPIC)


def by_responses(model: str, text: str, stream: bool):
    return litellm.responses(model=f"openai/{model}", input=text, stream=stream, **OPENAI)


class Refused(unittest.TestCase):
    def knows(self, ask):
        for who, model, text in refusals():
            for stream in (False, True):
                with self.subTest(who, stream=stream), self.assertRaises(litellm.ContextWindowExceededError):
                    read(ask(model, text, stream))

    def test_by_chat_completions(self):
        self.knows(by_chat_completions)

    def test_by_messages(self):
        self.knows(by_messages)

    def test_by_responses(self):
        self.knows(by_responses)


class InTheMiddle(unittest.TestCase):
    """The error comes in the middle of a stream: the status was 200, so LiteLLM has only the message to recognize it
    by.
    """

    def test_by_each_protocol(self):
        for ask in (by_chat_completions, by_messages, by_responses):
            for model in BREAKS:
                with self.subTest(ask.__name__, model=model), self.assertRaises(litellm.ContextWindowExceededError):
                    read(ask(model, SHORT, True))


if __name__ == "__main__":
    sys.exit(main())
