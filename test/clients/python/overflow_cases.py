"""The models and inputs with which the tests of inputs that are too long ask the service."""

import os

URL = os.environ["SLUICE_URL"]
KEY = os.environ["SLUICE_KEY"]
ENGINES = ("chat", "messages", "responses")
REFUSES = [f"acme/{engine}-refuses" for engine in ENGINES]
BREAKS = [f"acme/{engine}-breaks" for engine in ENGINES]
SHORT = "hello"
FAR_TOO_LONG = "hello " * 20_000


def read(stream) -> None:
    for _ in stream:
        pass


def refusals():
    """Yields inputs that the service itself refuses as too long, and inputs that an engine of each protocol refuses."""
    yield "the service", REFUSES[0], FAR_TOO_LONG
    for model in REFUSES:
        yield model, model, SHORT
