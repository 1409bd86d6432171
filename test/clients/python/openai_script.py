"""Tests the official openai SDK for Python, unchanged except for base URL, key and model ID.

`npm run test:clients` runs it against the service in front of the simulator over HTTP. Environment variables:
SLUICE_URL (including /v1), SLUICE_KEY, SLUICE_READER_KEY (with only the scope models:read) and ENGINE_COUNTS_URL, which
returns how many requests run at the engine and how many clients left it.
"""

import asyncio
import base64
import json
import os
import sys
import time
import unittest
from typing import Literal

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from suite import MODEL, PLAIN_MODEL, counts, main, says, words

URL = os.environ["SLUICE_URL"]
KEY = os.environ["SLUICE_KEY"]


def client_with(key: str = KEY, max_retries: int = 0) -> OpenAI:
    return OpenAI(base_url=URL, api_key=key, max_retries=max_retries)


client = client_with()


def until(holds, deadline_s: float, what: str) -> None:
    end = time.monotonic() + deadline_s
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s} s for {what}")
        time.sleep(0.01)


class City(BaseModel):
    city: str


class Event(BaseModel):
    name: str
    participants: list[str]
    day: Literal["Friday", "Saturday"]


TOOLS = [openai.pydantic_function_tool(City, name=name, description=f"{name} of a city") for name in ("weather", "time")]


class Models(unittest.TestCase):
    def test_are_listed(self):
        listed = list(client.models.list())
        self.assertEqual([model.id for model in listed], [MODEL, PLAIN_MODEL, "acme/small-1"])
        self.assertEqual({(model.object, model.owned_by) for model in listed}, {("model", "acme")})

    def test_are_retrieved_by_an_id_with_a_slash(self):
        self.assertEqual(client.models.retrieve(MODEL).id, MODEL)


class Chat(unittest.TestCase):
    def test_answers_with_text_usage_and_request_id(self):
        completion = client.chat.completions.create(model=MODEL, messages=says("echo", words(7)))
        self.assertEqual(completion.choices[0].message.content, words(7))
        self.assertEqual(completion.choices[0].finish_reason, "stop")
        self.assertEqual(completion.usage.completion_tokens, 7)
        self.assertEqual(completion.usage.total_tokens, completion.usage.prompt_tokens + 7)
        self.assertRegex(completion._request_id, r"^req_[0-9a-f]{32}$")

    def test_the_raw_response_has_the_usage_headers(self):
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=says("echo"))
        self.assertEqual(raw.headers["x-service-request-id"], raw.parse()._request_id)
        self.assertEqual(raw.headers["x-service-usage-month-percent"], "0")

    def test_max_tokens_and_stop(self):
        short = client.chat.completions.create(model=MODEL, messages=says("echo", words(50)), max_completion_tokens=5)
        self.assertEqual((short.choices[0].finish_reason, short.choices[0].message.content), ("length", words(5)))
        stopped = client.chat.completions.create(model=MODEL, messages=says("echo", "a b END c"), stop=["END"])
        self.assertEqual(stopped.choices[0].message.content.strip(), "a b")

    def test_logprobs(self):
        ask = dict(model=MODEL, messages=says("echo", words(3)), logprobs=True, top_logprobs=2)
        tokens = client.chat.completions.create(**ask).choices[0].logprobs.content
        self.assertEqual([len(token.top_logprobs) for token in tokens], [2, 2, 2])

    def test_an_image_is_seen(self):
        image = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
        content = [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": image}},
            {"type": "image_url", "image_url": {"url": "https://images.test/a.png", "detail": "low"}},
        ]
        completion = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": content}])
        self.assertIn("I was given 2 image(s).", completion.choices[0].message.content)


class Stream(unittest.TestCase):
    def test_chunk_by_chunk_without_usage(self):
        chunks = list(client.chat.completions.create(model=MODEL, messages=says("echo", words(9)), stream=True))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), words(9))
        self.assertEqual([chunk.choices[0].finish_reason for chunk in chunks][-1], "stop")
        self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_include_usage(self):
        messages = says("echo", words(9))
        ask = dict(model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True})
        last = list(client.chat.completions.create(**ask))[-1]
        whole = client.chat.completions.create(model=MODEL, messages=messages)
        self.assertEqual((last.choices, last.usage), ([], whole.usage))

    def test_helper_with_its_events_and_snapshot(self):
        ask = dict(model=MODEL, messages=says("echo", words(9)), stream_options={"include_usage": True})
        with client.chat.completions.stream(**ask) as stream:
            kinds = [event.type for event in stream]
            completion = stream.get_final_completion()
        self.assertEqual(kinds.count("content.done"), 1)
        self.assertGreater(kinds.count("content.delta"), 1)
        self.assertEqual(completion.choices[0].message.content, words(9))
        self.assertEqual(completion.usage.completion_tokens, 9)

    def test_reasoning_beside_the_text(self):
        ask = dict(model=MODEL, messages=says("echo"), reasoning_effort="low")
        whole = client.chat.completions.create(**ask)
        chunks = list(client.chat.completions.create(**ask, stream=True))
        thought = "".join(getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks)
        self.assertEqual(whole.choices[0].message.reasoning_content, thought)
        self.assertGreater(whole.usage.completion_tokens_details.reasoning_tokens, 0)

    def test_async(self):
        async def read() -> str:
            async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as asynchronous:
                ask = dict(model=MODEL, messages=says("echo", words(9)), stream=True)
                stream = await asynchronous.chat.completions.create(**ask)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

        self.assertEqual(asyncio.run(read()), words(9))


class Tools(unittest.TestCase):
    question = says("call=weather call=time", "weather and time?")

    def two_turns(self, ask):
        first = ask(self.question)
        self.assertEqual(first.finish_reason, "tool_calls")
        calls = first.message.tool_calls
        self.assertEqual([call.function.name for call in calls], ["weather", "time"])
        for call in calls:
            self.assertIsInstance(call.function.parsed_arguments, City)
        results = [{"role": "tool", "tool_call_id": call.id, "content": f"{call.function.name} is fine"} for call in calls]
        second = ask([*self.question, first.message, *results])
        self.assertEqual(second.finish_reason, "stop")
        self.assertIn("The tool weather said: “weather is fine”.", second.message.content)
        self.assertIn("The tool time said: “time is fine”.", second.message.content)

    def test_two_parallel_calls_over_two_turns(self):
        self.two_turns(
            lambda messages: client.chat.completions.parse(model=MODEL, messages=messages, tools=TOOLS).choices[0]
        )

    def test_two_parallel_calls_over_two_turns_streamed(self):
        def ask(messages):
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as stream:
                return stream.get_final_completion().choices[0]

        self.two_turns(ask)

    def test_a_forced_choice(self):
        choice = {"type": "function", "function": {"name": "time"}}
        ask = dict(model=MODEL, messages=says(""), tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
        calls = client.chat.completions.create(**ask).choices[0].message.tool_calls
        self.assertEqual([call.function.name for call in calls], ["time"])


class StructuredOutput(unittest.TestCase):
    ask = dict(model=MODEL, messages=says("", "Alice and Bob go to a fair"), response_format=Event)

    def test_by_parse(self):
        message = client.chat.completions.parse(**self.ask).choices[0].message
        self.assertIsInstance(message.parsed, Event)

    def test_by_stream(self):
        with client.chat.completions.stream(**self.ask) as stream:
            self.assertIsInstance(stream.get_final_completion().choices[0].message.parsed, Event)

    def test_a_refusal(self):
        message = client.chat.completions.parse(**{**self.ask, "messages": says("refusal")}).choices[0].message
        self.assertIsNone(message.parsed)
        self.assertIn("refuse", message.refusal)


class Leaving(unittest.TestCase):
    """A client that leaves stops the engine within a second."""

    long = dict(model=MODEL, messages=says("echo tps=50", words(10_000)))

    def setUp(self):
        self.before = counts()["clients_left"]

    def tearDown(self):
        def stopped():
            now = counts()
            return now["clients_left"] > self.before and now["active"] == 0

        until(stopped, 1, "the engine to be let go")

    def test_by_close(self):
        stream = client.chat.completions.create(**self.long, stream=True)
        next(iter(stream))
        stream.close()

    def test_by_leaving_the_helper(self):
        with client.chat.completions.stream(**self.long) as stream:
            next(iter(stream))

    def test_by_timeout(self):
        with self.assertRaises(openai.APITimeoutError):
            client.chat.completions.create(**self.long, timeout=0.5)

    def test_by_cancelling_a_task(self):
        async def cancelled():
            async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as asynchronous:
                task = asyncio.create_task(asynchronous.chat.completions.create(**self.long))
                while counts()["active"] == 0:
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        asyncio.run(cancelled())


class Responses(unittest.TestCase):
    # The tools in the flat format of Responses.
    tools = [{"type": "function", **tool["function"]} for tool in TOOLS]
    question = "[simulator: call=weather call=time] weather and time?"

    @staticmethod
    def ask(through=client, **body):
        return through.responses.create(**{"model": MODEL, "input": "[simulator: echo] hello there", **body})

    @staticmethod
    def calls(response):
        return [item for item in response.output if item.type == "function_call"]

    @classmethod
    def results(cls, response):
        kind = "function_call_output"
        return [
            {"type": kind, "call_id": call.call_id, "output": f"{call.name} is fine"} for call in cls.calls(response)
        ]

    def test_answers_with_text_usage_and_request_id(self):
        response = self.ask(input=f"[simulator: echo] {words(7)}", instructions="Be brief.")
        self.assertEqual((response.status, response.output_text), ("completed", words(7)))
        self.assertEqual(response.usage.total_tokens, response.usage.input_tokens + 7)
        self.assertRegex(response._request_id, r"^req_[0-9a-f]{32}$")

    def test_a_cap_makes_it_incomplete(self):
        response = self.ask(input=f"[simulator: echo] {words(50)}", max_output_tokens=5)
        self.assertEqual((response.status, response.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        self.assertEqual(response.output_text, words(5))

    def test_event_by_event(self):
        events = list(self.ask(input=f"[simulator: echo] {words(9)}", stream=True))
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        self.assertEqual("".join(deltas), words(9))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual((events[0].type, events[-1].type), ("response.created", "response.completed"))
        self.assertEqual(events[-1].response.usage.output_tokens, 9)

    def test_helper_with_its_events_and_final_response(self):
        with client.responses.stream(model=MODEL, input=f"[simulator: echo] {words(9)}") as stream:
            snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
            response = stream.get_final_response()
        self.assertEqual((snapshots[-1], response.output_text), (words(9), words(9)))

    def test_reasoning_stands_before_the_text(self):
        response = self.ask(reasoning={"effort": "low"})
        self.assertEqual([item.type for item in response.output], ["reasoning", "message"])
        self.assertGreater(len(response.output[0].content[0].text), 0)
        self.assertGreater(response.usage.output_tokens_details.reasoning_tokens, 0)

    def test_parse(self):
        response = client.responses.parse(model=MODEL, input="Alice and Bob go to a fair", text_format=Event)
        self.assertIsInstance(response.output_parsed, Event)
        with client.responses.stream(model=MODEL, input="Alice and Bob go to a fair", text_format=Event) as stream:
            self.assertIsInstance(stream.get_final_response().output_parsed, Event)

    def test_an_image_is_seen(self):
        image = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
        content = [{"type": "input_text", "text": "what?"}, {"type": "input_image", "image_url": image, "detail": "low"}]
        self.assertIn("I was given 1 image(s).", self.ask(input=[{"role": "user", "content": content}]).output_text)

    def answered(self, response):
        self.assertIn("The tool weather said: “weather is fine”.", response.output_text)
        self.assertIn("The tool time said: “time is fine”.", response.output_text)

    def test_tools_with_all_items_sent_again(self):
        conversation = [{"role": "user", "content": self.question}]
        first = client.responses.parse(model=MODEL, input=conversation, tools=self.tools, store=False)
        self.assertEqual([call.name for call in self.calls(first)], ["weather", "time"])
        conversation += [*first.output, *self.results(first)]
        second = self.ask(input=conversation, tools=self.tools, store=False)
        self.answered(second)
        conversation += [*second.output, {"role": "user", "content": "[simulator: call=time] and later?"}]
        third = self.ask(input=conversation, tools=self.tools, store=False)
        self.assertEqual([call.name for call in self.calls(third)], ["time"])

    def test_tools_by_previous_response_id(self):
        first = self.ask(input=self.question, tools=self.tools)
        second = self.ask(input=self.results(first), tools=self.tools, previous_response_id=first.id)
        self.answered(second)
        later = "[simulator: call=time] and later?"
        third = self.ask(input=later, tools=self.tools, previous_response_id=second.id)
        last = self.ask(input=self.results(third), tools=self.tools, previous_response_id=third.id)
        self.assertIn("The tool time said: “time is fine”.", last.output_text)

    def test_a_custom_tool(self):
        given = base64.b64encode(json.dumps({"input": '- "a"\n+ b'}).encode()).decode()
        tool = {"type": "custom", "name": "patch", "description": "Takes a patch."}
        first = self.ask(input=f"[simulator: call=patch:{given}] do it", tools=[tool])
        self.assertEqual((first.output[0].type, first.output[0].input), ("custom_tool_call", '- "a"\n+ b'))
        result = {"type": "custom_tool_call_output", "call_id": first.output[0].call_id, "output": "it is applied"}
        second = self.ask(input=[result], tools=[tool], previous_response_id=first.id)
        self.assertIn("The tool patch said: “it is applied”.", second.output_text)

    def test_what_is_kept_is_retrieved_listed_and_deleted(self):
        texts = ["one", "two", "three"]
        response = self.ask(input=[{"role": "user", "content": text} for text in texts])
        self.assertEqual(client.responses.retrieve(response.id).output_text, response.output_text)
        pages = client.responses.input_items.list(response.id, limit=2, order="asc")
        self.assertEqual([item.content[0].text for item in pages], texts)
        client.responses.delete(response.id)
        with self.assertRaises(openai.NotFoundError):
            client.responses.retrieve(response.id)

    def test_async(self):
        async def read() -> str:
            async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as asynchronous:
                stream = await asynchronous.responses.create(
                    model=MODEL, input=f"[simulator: echo] {words(9)}", stream=True
                )
                return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])

        self.assertEqual(asyncio.run(read()), words(9))

    def test_leaving_stops_the_engine(self):
        before = counts()["clients_left"]
        stream = self.ask(input=f"[simulator: echo tps=50] {words(10_000)}", stream=True)
        next(iter(stream))
        stream.close()
        until(lambda: counts()["clients_left"] > before and counts()["active"] == 0, 1, "the engine to be let go")

    def test_a_stream_that_fails_says_so(self):
        *_, last = self.ask(input=f"[simulator: echo error-after=3] {words(20)}", stream=True)
        self.assertEqual((last.type, last.response.status), ("response.failed", "failed"))
        self.assertEqual(last.response.error.code, "server_error")


class Background(unittest.TestCase):
    @staticmethod
    def begin(directives: str, **more):
        return client.responses.create(model=MODEL, input=f"[simulator: {directives}]", background=True, **more)

    def ended(self, response_id: str):
        def is_over() -> bool:
            return client.responses.retrieve(response_id).status not in ("queued", "in_progress")

        until(is_over, 20, "the end of the response")
        return client.responses.retrieve(response_id)

    def test_is_polled_until_it_is_complete(self):
        begun = self.begin("tokens=30 tps=30")
        self.assertEqual((begun.status, begun.background, begun.output), ("in_progress", True, []))
        last = self.ended(begun.id)
        self.assertEqual((last.status, last.usage.output_tokens), ("completed", 30))
        self.assertIn("simulator", last.output_text)

    def test_a_stream_that_is_lost_goes_on_after_the_last_event(self):
        seen, response_id = [], ""
        with self.begin("tokens=60 tps=40", stream=True) as stream:
            for event in stream:
                seen.append(event)
                if event.type == "response.created":
                    response_id = event.response.id
                if len(seen) == 12:
                    break
        rest = client.responses.retrieve(response_id, stream=True, starting_after=seen[-1].sequence_number)
        seen.extend(rest)
        self.assertEqual([event.sequence_number for event in seen], list(range(len(seen))))
        self.assertEqual((seen[-1].type, seen[-1].response.usage.output_tokens), ("response.completed", 60))
        text = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
        self.assertEqual(client.responses.retrieve(response_id).output_text, text)

    def test_is_cancelled_and_stays_so(self):
        before = counts()["clients_left"]
        begun = self.begin("tokens=5000 tps=50")
        until(lambda: counts()["active"] > 0, 5, "the engine to be asked")
        for _ in range(2):
            self.assertEqual(client.responses.cancel(begun.id).status, "cancelled")
        self.assertEqual(client.responses.retrieve(begun.id).status, "cancelled")
        until(lambda: counts()["clients_left"] > before and counts()["active"] == 0, 5, "the engine to be let go")

    def test_one_that_has_ended_is_not_cancelled(self):
        begun = self.begin("tokens=3")
        self.assertEqual(self.ended(begun.id).status, "completed")
        self.assertEqual(client.responses.cancel(begun.id).status, "completed")

    def test_ends_incomplete_and_failed(self):
        cut = self.ended(self.begin("tokens=60 tps=100", max_output_tokens=20).id)
        self.assertEqual((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        broken = self.ended(self.begin("tokens=30 error-after=5").id)
        self.assertEqual((broken.status, broken.error.code), ("failed", "server_error"))

    def test_with_a_key_is_begun_once(self):
        headers = {"idempotency-key": "background of Python"}
        ids = {self.begin("tokens=30 tps=30", extra_headers=headers).id for _ in range(3)}
        self.assertEqual(len(ids), 1)

    def test_async(self):
        async def read() -> list[int]:
            async with AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0) as asynchronous:
                begun = await asynchronous.responses.create(
                    model=MODEL, input="[simulator: tokens=20]", background=True, stream=True
                )
                first = await anext(aiter(begun))
                await begun.close()
                rest = await asynchronous.responses.retrieve(first.response.id, stream=True, starting_after=0)
                return [event.sequence_number async for event in rest]

        numbers = asyncio.run(read())
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))


class Errors(unittest.TestCase):
    def refused(self, kind, ask, **expected):
        with self.assertRaises(kind) as caught:
            ask()
        error = caught.exception
        self.assertEqual({name: getattr(error, name) for name in expected}, expected)
        self.assertRegex(error.body["request_id"], r"^req_[0-9a-f]{32}$")
        if isinstance(error, openai.APIStatusError):
            self.assertEqual(error.request_id, error.body["request_id"])
        return error

    @staticmethod
    def chat(through=client, **body):
        return lambda: through.chat.completions.create(**{"model": MODEL, "messages": says("echo"), **body})

    @staticmethod
    def responses(through=client, **body):
        return lambda: Responses.ask(through, **body)

    def test_400(self):
        bad = openai.BadRequestError
        self.refused(bad, self.chat(temperature=9), code="invalid_value", param="temperature", status_code=400)
        self.refused(bad, self.chat(model=PLAIN_MODEL, logprobs=True), code="unsupported_feature", param="logprobs")
        self.refused(bad, self.chat(messages=says("context-length")), code="context_length_exceeded")

    def test_400_by_responses(self):
        bad = openai.BadRequestError
        self.refused(bad, self.responses(temperature=9), code="invalid_value", param="temperature", status_code=400)
        unknown = dict(code="previous_response_not_found", param="previous_response_id")
        self.refused(bad, self.responses(previous_response_id="resp_unknown"), **unknown)
        unstored = self.responses(background=True, store=False)
        self.refused(bad, unstored, code="unsupported_feature", param="background")

    def test_401_and_404_by_responses(self):
        garbage = self.responses(client_with("sk-garbage"))
        self.refused(openai.AuthenticationError, garbage, code="invalid_api_key", type="authentication_error")
        for stream in (False, True):
            ask = self.responses(model="acme/nothing", stream=stream)
            self.refused(openai.NotFoundError, ask, code="model_not_found", param="model")
        self.refused(openai.NotFoundError, lambda: client.responses.retrieve("resp_unknown"), param="id")

    def test_401(self):
        garbage = self.chat(client_with("sk-garbage"))
        self.refused(openai.AuthenticationError, garbage, code="invalid_api_key", type="authentication_error")

    def test_403(self):
        reader = self.chat(client_with(os.environ["SLUICE_READER_KEY"]))
        self.refused(openai.PermissionDeniedError, reader, code="missing_scope", type="permission_error")

    def test_404(self):
        for stream in (False, True):
            ask = self.chat(model="acme/nothing", stream=stream)
            self.refused(openai.NotFoundError, ask, code="model_not_found", param="model")
        self.refused(openai.NotFoundError, lambda: client.models.retrieve("acme/nothing"), code="model_not_found")

    def test_429(self):
        ask = self.chat(messages=says("status=429 retry-after=7"))
        error = self.refused(openai.RateLimitError, ask, code="capacity_exceeded", type="rate_limit_error")
        self.assertEqual(error.response.headers["retry-after"], "7")

    def test_503(self):
        for stream in (False, True):
            ask = self.chat(messages=says("status=503"), stream=stream)
            self.refused(openai.InternalServerError, ask, code="overloaded", status_code=503)

    def test_in_the_middle_of_a_stream(self):
        for fault in ("cut-after=3", "error-after=3", "malformed-after=3"):
            text = []

            def read():
                for chunk in self.chat(messages=says(f"echo {fault}", words(20)), stream=True)():
                    text.append(chunk.choices[0].delta.content or "")
                    self.assertIsNone(chunk.choices[0].finish_reason)

            with self.subTest(fault):
                self.refused(openai.APIError, read, code="upstream_unavailable", type="api_error")
                self.assertEqual("".join(text), words(3))

    def test_what_can_succeed_is_tried_again_when_it_was_told(self):
        before, started = counts()["requests"], time.monotonic()
        ask = self.chat(client_with(max_retries=1), messages=says("status=503 retry-after=1"))
        self.refused(openai.InternalServerError, ask, status_code=503)
        # The SDK sends the request twice. Each time, Sluice sends it to its only engine, and once more after the time
        # that the engine's retry-after says.
        self.assertEqual(counts()["requests"] - before, 4)
        self.assertGreater(time.monotonic() - started, 2.7)

    def test_what_cannot_succeed_is_not_tried_again(self):
        before = counts()["requests"]
        patient = client_with(max_retries=2)
        self.refused(openai.BadRequestError, self.chat(patient, temperature=9))
        self.refused(openai.BadRequestError, self.chat(patient, messages=says("status=400")))
        self.refused(openai.AuthenticationError, self.chat(client_with("sk-garbage", 2)))
        self.refused(openai.NotFoundError, self.chat(patient, model="acme/nothing"))
        self.assertEqual(counts()["requests"] - before, 1)


if __name__ == "__main__":
    sys.exit(main())
