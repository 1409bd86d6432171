"""Runs the Python clients that are named on the command line against the service, and checks that the vectors, scores
and texts are the engine's.
"""

import json
import os
import struct
import sys
import traceback
import urllib.request

URL, KEY, ENGINE = os.environ["SLUICE_URL"], os.environ["SLUICE_KEY"], os.environ["ENGINE_ROOT"]
MODELS, NAMES = json.loads(os.environ["SLUICE_MODELS"]), json.loads(os.environ["ENGINE_MODELS"])
TEXTS = ["A canal has locks.", "Grüße 🌍!", "The weather in Oslo."]
QUERY = "Which river has locks?"


def direct(path, body):
    request = urllib.request.Request(
        ENGINE + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def single(vectors):
    """Packs the vectors as 32-bit floats, the precision of the base64 encoding."""
    return [struct.pack(f"<{len(vector)}f", *vector) for vector in vectors]


def expected(texts=TEXTS):
    data = direct("/v1/embeddings", {"model": NAMES["embeddings"], "input": texts})["data"]
    return single([one["embedding"] for one in data])


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} is not {wanted!r}")


def openai():
    from openai import OpenAI

    client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    packed = client.embeddings.create(model=MODELS["embeddings"], input=TEXTS)
    same(single([one.embedding for one in packed.data]), expected())
    floats = client.embeddings.create(model=MODELS["embeddings"], input=TEXTS, encoding_format="float")
    same(single([one.embedding for one in floats.data]), expected())
    same(packed.model_extra, {})
    assert packed.usage.prompt_tokens > 0


def langchain():
    from langchain_openai import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(
        base_url=f"{URL}/v1", api_key=KEY, model=MODELS["embeddings"], check_embedding_ctx_length=False, max_retries=0
    )
    same(single(embeddings.embed_documents(TEXTS)), expected())
    same(single([embeddings.embed_query(TEXTS[0])]), expected(TEXTS[:1]))


def llama_index():
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    embeddings = OpenAILikeEmbedding(model_name=MODELS["embeddings"], api_base=f"{URL}/v1", api_key=KEY, max_retries=0)
    same(single(embeddings.get_text_embedding_batch(TEXTS)), expected())
    same(single([embeddings.get_query_embedding(TEXTS[0])]), expected(TEXTS[:1]))


def cohere():
    import cohere as package

    client = package.ClientV2(api_key=KEY, base_url=URL)
    answer = client.rerank(model=MODELS["rerank"], query=QUERY, documents=TEXTS, top_n=2)
    said = direct("/v1/rerank", {"model": NAMES["rerank"], "query": QUERY, "documents": TEXTS, "top_n": 2})["results"]
    same([one.index for one in answer.results], [one["index"] for one in said])
    # The seventh digit of vLLM's own scores differs from call to call.
    for one, other in zip(answer.results, said):
        assert abs(one.relevance_score - other["relevance_score"]) < 1e-5, (one, other)
    assert answer.id and answer.meta.tokens.input_tokens > 0


def openai_completions():
    from openai import OpenAI

    client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    asked = {"prompt": "Say hello.", "max_tokens": 8, "temperature": 0}
    said = direct("/v1/completions", {"model": NAMES["completions"], **asked})
    whole = client.completions.create(model=MODELS["completions"], **asked)
    same(whole.choices[0].text, said["choices"][0]["text"])
    same(whole.usage.completion_tokens, said["usage"]["completion_tokens"])
    stream = client.completions.create(
        model=MODELS["completions"], stream=True, stream_options={"include_usage": True}, **asked
    )
    chunks = list(stream)
    same("".join(one.text for chunk in chunks for one in chunk.choices), said["choices"][0]["text"])
    same(chunks[-1].usage.total_tokens, said["usage"]["total_tokens"])


def outcome(client):
    try:
        globals()[client]()
    except Exception:
        return traceback.format_exc(limit=-3)[-2000:]
    return "ok"


print(json.dumps({client: outcome(client) for client in sys.argv[1:]}))
