"""Tests two Python frameworks, unchanged: the OpenAI Agents SDK and LangChain, set up as docs/clients.md says.

`npm run test:clients -- frameworks` runs it against the service in front of the simulator over HTTP. Environment
variables: SLUICE_URL (including /v1) and SLUICE_KEY.
"""

import asyncio
import os
import sys
import unittest

from agents import Agent, ModelSettings, MultiProvider, OpenAIProvider, RunConfig, Runner, function_tool
from agents.exceptions import UserError
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from suite import main

URL = os.environ["SLUICE_URL"]
KEY = os.environ["SLUICE_KEY"]
MODEL = "acme/writer-1"
OPENAI_MODEL = "openai/writer-1"

# The Agents SDK binds its connections to the event loop that created them, so all runs share one loop.
loop = asyncio.new_event_loop()


def config(provider, **settings) -> RunConfig:
    return RunConfig(model_provider=provider, model_settings=ModelSettings(**settings), tracing_disabled=True)


def provider(use_responses: bool) -> OpenAIProvider:
    return OpenAIProvider(base_url=URL, api_key=KEY, use_responses=use_responses)


def multi_provider(**modes) -> MultiProvider:
    return MultiProvider(openai_base_url=URL, openai_api_key=KEY, **modes)


def agent(model: str = MODEL, tools: tuple = ()) -> Agent:
    return Agent(name="keeper", instructions="Be brief.", model=model, tools=list(tools))


def run(run_config: RunConfig, asked: Agent | None = None, text: str = "Hello."):
    return loop.run_until_complete(Runner.run(asked or agent(), text, run_config=run_config))


def streamed(run_config: RunConfig):
    async def read():
        result = Runner.run_streamed(agent(), "Hello.", run_config=run_config)
        async for _ in result.stream_events():
            pass
        return result

    return loop.run_until_complete(read())


def total_tokens(result) -> int:
    return result.context_wrapper.usage.total_tokens


class AgentsSdk(unittest.TestCase):
    def test_answers_through_a_provider_of_our_own(self):
        for use_responses in (True, False):
            with self.subTest(use_responses=use_responses):
                self.assertIn("Hello.", run(config(provider(use_responses))).final_output)

    def test_runs_a_tool(self):
        asked = []

        @function_tool
        def weather(city: str) -> str:
            """The weather of a city."""
            asked.append(city)
            return "snow"

        for use_responses in (True, False):
            with self.subTest(use_responses=use_responses):
                asked.clear()
                text = "[simulator: call=weather:eyJjaXR5IjoiT3NsbyJ9] What is the weather?"
                result = run(config(provider(use_responses)), agent(tools=(weather,)), text)
                self.assertEqual(asked, ["Oslo"])
                self.assertIn("snow", result.final_output)

    def test_takes_what_stands_before_the_slash_for_a_provider_unless_told_otherwise(self):
        with self.assertRaises(UserError):
            run(config(multi_provider()))
        whole_id = multi_provider(openai_prefix_mode="model_id", unknown_prefix_mode="model_id")
        for model in (MODEL, OPENAI_MODEL):
            with self.subTest(model=model):
                self.assertIn("Hello.", run(config(whole_id), agent(model)).final_output)

    def test_counts_a_chat_stream_where_include_usage_asks_for_it(self):
        self.assertEqual(total_tokens(streamed(config(provider(False)))), 0)
        self.assertGreater(total_tokens(streamed(config(provider(False), include_usage=True))), 0)
        self.assertGreater(total_tokens(streamed(config(provider(True)))), 0)


class LangChain(unittest.TestCase):
    def usage(self, chat):
        whole = None
        for chunk in chat.stream("Hello."):
            whole = chunk if whole is None else whole + chunk
        self.assertIn("Hello.", whole.text)
        return whole.usage_metadata

    def test_counts_a_chat_stream_where_stream_usage_asks_for_it(self):
        self.assertIsNone(self.usage(ChatOpenAI(base_url=URL, api_key=KEY, model=MODEL)))
        for settings in ({"stream_usage": True}, {"use_responses_api": True}):
            with self.subTest(settings=settings):
                usage = self.usage(ChatOpenAI(base_url=URL, api_key=KEY, model=MODEL, **settings))
                self.assertGreater(usage["output_tokens"], 0)

    def test_counts_a_messages_stream(self):
        usage = self.usage(ChatAnthropic(base_url=URL.removesuffix("/v1"), api_key=KEY, model=MODEL))
        self.assertGreater(usage["output_tokens"], 0)


if __name__ == "__main__":
    sys.exit(main())
