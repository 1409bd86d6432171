"""LiteLLM and LangChain, unchanged but for base URL, key and model id: an input that is too long is what they say it is.

`npm run test:clients -- overflow` runs it against the service in front of engines that find everything too long. From the
environment: SLUICE_URL (without /v1) and SLUICE_KEY. Models are `acme/<protocol of the engine>-refuses`, whose engine
answers 400, and `-breaks`, whose engine fails in the middle of its answer.
"""

import os
import sys
import unittest

import litellm
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI

from suite import main

URL = os.environ["SLUICE_URL"]
KEY = os.environ["SLUICE_KEY"]
ENGINES = ("chat", "messages", "responses")
REFUSES = [f"acme/{engine}-refuses" for engine in ENGINES]
BREAKS = [f"acme/{engine}-breaks" for engine in ENGINES]
SHORT = "hello"
FAR_TOO_LONG = "hello " * 20_000

OPENAI = {"api_key": KEY, "api_base": f"{URL}/v1", "num_retries": 0, "max_retries": 0}
ANTHROPIC = {"api_key": KEY, "api_base": URL, "num_retries": 0, "max_retries": 0}

litellm.suppress_debug_info = True


def read(stream) -> None:
    for _ in stream:
        pass


def litellm_chat(model: str, text: str, stream: bool):
    messages = [{"role": "user", "content": text}]
    return litellm.completion(model=f"openai/{model}", messages=messages, stream=stream, **OPENAI)


def litellm_messages(model: str, text: str, stream: bool):
    messages = [{"role": "user", "content": text}]
    return litellm.completion(model=f"anthropic/{model}", messages=messages, stream=stream, max_tokens=64, **ANTHROPIC)


def litellm_responses(model: str, text: str, stream: bool):
    return litellm.responses(model=f"openai/{model}", input=text, stream=stream, **OPENAI)


def langchain_chat(model: str):
    return ChatOpenAI(model=model, api_key=KEY, base_url=f"{URL}/v1", max_retries=0, use_responses_api=False)


def langchain_responses(model: str):
    return ChatOpenAI(model=model, api_key=KEY, base_url=f"{URL}/v1", max_retries=0, use_responses_api=True)


def langchain_messages(model: str):
    return ChatAnthropic(model=model, api_key=KEY, base_url=URL, max_retries=0, max_tokens=64)


def refusals():
    """Ours, and that of an engine of each protocol."""
    yield "the service", REFUSES[0], FAR_TOO_LONG
    for model in REFUSES:
        yield model, model, SHORT


class Refused(unittest.TestCase):
    def litellm_knows(self, ask):
        for who, model, text in refusals():
            for stream in (False, True):
                with self.subTest(who, stream=stream), self.assertRaises(litellm.ContextWindowExceededError):
                    read(ask(model, text, stream))

    def langchain_knows(self, client):
        for who, model, text in refusals():
            with self.subTest(who), self.assertRaises(ContextOverflowError):
                client(model).invoke(text)
            with self.subTest(who, stream=True), self.assertRaises(ContextOverflowError):
                read(client(model).stream(text))

    def test_litellm_by_chat_completions(self):
        self.litellm_knows(litellm_chat)

    def test_litellm_by_messages(self):
        self.litellm_knows(litellm_messages)

    def test_litellm_by_responses(self):
        self.litellm_knows(litellm_responses)

    def test_langchain_by_chat_completions(self):
        self.langchain_knows(langchain_chat)

    def test_langchain_by_messages(self):
        self.langchain_knows(langchain_messages)

    def test_langchain_by_responses(self):
        self.langchain_knows(langchain_responses)


class InTheMiddle(unittest.TestCase):
    """Of an answer: the status was 200, so that the words alone tell."""

    def raised(self, ask) -> list:
        raised = []
        for model in BREAKS:
            with self.subTest(model), self.assertRaises(Exception) as caught:
                read(ask(model))
            raised.append(caught.exception)
        return raised

    def test_litellm(self):
        for ask in (litellm_chat, litellm_messages, litellm_responses):
            for raised in self.raised(lambda model: ask(model, SHORT, True)):
                with self.subTest(ask.__name__):
                    self.assertIsInstance(raised, litellm.ContextWindowExceededError)

    def test_langchain_by_chat_completions(self):
        for raised in self.raised(lambda model: langchain_chat(model).stream(SHORT)):
            self.assertIsInstance(raised, ContextOverflowError)

    def test_langchain_by_messages_and_responses_has_no_class_for_it_but_shows_our_words(self):
        for raised in self.raised(lambda model: langchain_messages(model).stream(SHORT)):
            self.assertIn("prompt is too long: 5000 tokens > 4096 maximum", str(raised))
        for raised in self.raised(lambda model: langchain_responses(model).stream(SHORT)):
            self.assertIn("This model's maximum context length is 4096 tokens", str(raised))


if __name__ == "__main__":
    sys.exit(main())
