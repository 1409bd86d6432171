"""Tests that LangChain, unchanged except for base URL, key and model ID, recognizes the error for an input that is too
long, and shows the reason if a request exceeds a whole limit.

`npm run test:clients -- langchain` runs it against the service in front of engines for which every input is too long.
Environment variables: SLUICE_URL (without /v1), SLUICE_KEY, SLUICE_LIMITED_KEY (100 tokens a minute) and REQUESTS_URL,
which returns how many requests were made. Models are `acme/<protocol of the engine>-refuses`, whose engine responds
with 400, and `-breaks`, whose engine fails in the middle of its response.
"""

import json
import os
import sys
import unittest
import urllib.request

from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI

from overflow_cases import BREAKS, KEY, REFUSES, SHORT, URL, read, refusals
from suite import main

LIMITED_KEY = os.environ["SLUICE_LIMITED_KEY"]


def by_chat_completions(model: str, key: str = KEY, **more):
    return ChatOpenAI(model=model, api_key=key, base_url=f"{URL}/v1", use_responses_api=False, **more)


def by_responses(model: str, key: str = KEY, **more):
    return ChatOpenAI(model=model, api_key=key, base_url=f"{URL}/v1", use_responses_api=True, **more)


def by_messages(model: str, key: str = KEY, **more):
    return ChatAnthropic(model=model, api_key=key, base_url=URL, max_tokens=64, **more)


CLIENTS = (by_chat_completions, by_messages, by_responses)


def requests() -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(os.environ["REQUESTS_URL"]) as answer:
        return json.load(answer)


class TooLong(unittest.TestCase):
    def test_is_known_by_each_protocol(self):
        for client in CLIENTS:
            for who, model, text in refusals():
                with self.subTest(client.__name__, who=who), self.assertRaises(ContextOverflowError):
                    client(model).invoke(text)
                with self.subTest(client.__name__, who=who, stream=True), self.assertRaises(ContextOverflowError):
                    read(client(model).stream(text))


class TooLongInTheMiddle(unittest.TestCase):
    """The error comes in the middle of a stream: the status was 200, so LangChain has only the message to recognize it
    by.
    """

    def raised(self, client) -> list:
        raised = []
        for model in BREAKS:
            with self.subTest(model), self.assertRaises(Exception) as caught:
                read(client(model).stream(SHORT))
            raised.append(caught.exception)
        return raised

    def test_is_known_by_chat_completions(self):
        for raised in self.raised(by_chat_completions):
            self.assertIsInstance(raised, ContextOverflowError)

    def test_shows_our_words_by_messages_and_responses_whatever_its_class(self):
        # One engine's error names that engine's context of 4000 tokens; the other errors get the context window of the
        # catalog.
        for raised in self.raised(by_messages):
            self.assertRegex(str(raised), r"prompt is too long: 5000 tokens > (4000|4096) maximum")
        for raised in self.raised(by_responses):
            self.assertRegex(str(raised), r"This model's maximum context length is (4000|4096) tokens")


class NeverFits(unittest.TestCase):
    def test_is_asked_once_and_says_why(self):
        for client in CLIENTS:
            before = requests()
            with self.subTest(client.__name__), self.assertRaises(Exception) as caught:
                client(REFUSES[0], LIMITED_KEY).invoke(SHORT * 400)
            self.assertEqual(requests() - before, 1)
            self.assertIn("more than the key minute's whole limit of 100 tokens a minute", str(caught.exception))


if __name__ == "__main__":
    sys.exit(main())
