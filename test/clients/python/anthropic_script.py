"""Tests the official Anthropic SDK for Python, unchanged except for base URL, key and model ID.

`npm run test:clients -- anthropic` runs it against the service in front of the simulator over HTTP. Environment
variables: SLUICE_URL (including /v1), SLUICE_KEY, SLUICE_READER_KEY (with only the scope models:read) and
ENGINE_COUNTS_URL, which returns how many requests reached the engine.
"""

import os
import sys
import unittest

import anthropic
from anthropic import Anthropic, beta_tool
from pydantic import BaseModel

from suite import MODEL, PLAIN_MODEL, counts, main, says, words

URL = os.environ["SLUICE_URL"].removesuffix("/v1")
KEY = os.environ["SLUICE_KEY"]
WEATHER = {
    "name": "get_weather",
    "description": "The weather at a place.",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def client_with(key: str = KEY, max_retries: int = 0) -> Anthropic:
    return Anthropic(base_url=URL, api_key=key, max_retries=max_retries)


client = client_with()


def requests() -> int:
    return counts()["requests"]


def text_in(message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def ask(directives: str = "", text: str = "hello there", **more) -> dict:
    return {"model": MODEL, "max_tokens": 1024, "messages": says(directives, text), **more}


class City(BaseModel):
    city: str
    capital: bool


class Models(unittest.TestCase):
    def test_list_and_retrieve(self):
        self.assertEqual([model.id for model in client.models.list()], [MODEL, PLAIN_MODEL, "acme/small-1"])
        self.assertEqual(client.models.retrieve(MODEL).id, MODEL)


class Creating(unittest.TestCase):
    def test_text_usage_and_request_id(self):
        message = client.messages.create(**ask("echo", words(7), system="Be brief."))
        self.assertEqual(text_in(message), words(7))
        self.assertEqual((message.stop_reason, message.usage.output_tokens), ("end_turn", 7))
        self.assertRegex(message._request_id, r"^req_[0-9a-f]{32}$")

    def test_structured_output(self):
        message = client.messages.parse(**ask("", "Name a city.", output_format=City))
        self.assertIsInstance(message.parsed_output, City)

    def test_count(self):
        short = client.messages.count_tokens(model=MODEL, messages=says("", "hi"))
        long = client.messages.count_tokens(model=MODEL, messages=says("", words(500)), tools=[WEATHER])
        self.assertGreater(long.input_tokens, short.input_tokens + 400)

    def test_two_calls_over_two_turns(self):
        tools = [WEATHER, {**WEATHER, "name": "get_time"}]
        first = client.messages.create(**ask("calls=2", tools=tools))
        calls = [block for block in first.content if block.type == "tool_use"]
        self.assertEqual([(call.name, list(call.input)) for call in calls], [("get_weather", ["place"]), ("get_time", ["place"])])
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": f"of {call.name}"} for call in calls]
        messages = [*says("calls=2"), {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        second = client.messages.create(**{**ask(tools=tools), "messages": messages})
        self.assertIn("of get_weather", text_in(second))
        self.assertIn("of get_time", text_in(second))


class Streaming(unittest.TestCase):
    def test_helper(self):
        with client.messages.stream(**ask("reasoning=5 calls=2 text-with-calls", tools=[WEATHER])) as stream:
            text = "".join(stream.text_stream)
            message = stream.get_final_message()
        self.assertEqual([block.type for block in message.content], ["thinking", "text", "tool_use", "tool_use"])
        self.assertEqual(text, text_in(message))
        self.assertTrue(all(block.signature for block in message.content if block.type == "thinking"))

    def test_events(self):
        types = [event.type for event in client.messages.create(**ask("echo", words(3)), stream=True)]
        self.assertEqual((types[0], types[-2:]), ("message_start", ["message_delta", "message_stop"]))

    def test_a_break_in_the_middle_is_an_error(self):
        with self.assertRaises(anthropic.APIError):
            for _ in client.messages.create(**ask("tokens=30 cut-after=9"), stream=True):
                pass


class ToolRunner(unittest.TestCase):
    def test_runs_though_threads_are_refused(self):
        asked = []

        @beta_tool
        def look_up(word: str) -> str:
            """Looks up a word.

            Args:
                word: The word.
            """
            asked.append(word)
            return "it means water"

        before = requests()
        final = client.beta.messages.tool_runner(**ask("call=look_up", tools=[look_up])).until_done()
        self.assertEqual(len(asked), 1)
        self.assertIn("it means water", text_in(final))
        self.assertEqual(requests() - before, 2)


class Refusals(unittest.TestCase):
    def refused(self, kind, code: str, **body):
        with self.assertRaises(kind) as caught:
            client.messages.create(**{**ask(), **body})
        error = caught.exception
        self.assertEqual(error.body["error"]["details"]["error_code"], code)
        self.assertRegex(error.request_id, r"^req_[0-9a-f]{32}$")
        return error

    def test_of_a_field(self):
        error = self.refused(anthropic.BadRequestError, "invalid_value", messages=[{"role": "robot", "content": "x"}])
        self.assertIn("messages[0].role: ", error.body["error"]["message"])

    def test_of_a_feature(self):
        self.refused(anthropic.BadRequestError, "unsupported_feature", model=PLAIN_MODEL, tools=[WEATHER])

    def test_of_a_model(self):
        self.refused(anthropic.NotFoundError, "model_not_found", model="acme/none")
        with self.assertRaises(anthropic.NotFoundError):
            client.models.retrieve("acme/none")

    def test_of_an_engine(self):
        self.refused(anthropic.RateLimitError, "capacity_exceeded", messages=says("status=429"))
        self.refused(anthropic.InternalServerError, "overloaded", messages=says("status=503"))

    def test_of_a_key_and_of_a_scope(self):
        with self.assertRaises(anthropic.AuthenticationError):
            client_with("garbage").messages.create(**ask())
        narrow = client_with(os.environ["SLUICE_READER_KEY"])
        with self.assertRaises(anthropic.PermissionDeniedError):
            narrow.messages.create(**ask())
        self.assertGreater(narrow.messages.count_tokens(model=MODEL, messages=says("")).input_tokens, 0)

    def test_what_cannot_succeed_is_asked_once(self):
        before = requests()
        with self.assertRaises(anthropic.BadRequestError):
            client_with(max_retries=2).messages.create(**ask("context-length"))
        self.assertEqual(requests() - before, 1)


if __name__ == "__main__":
    sys.exit(main())
