"""Generates a Qwen 3 model that tells long stories, without training: `python stories.py FOLDER SENTENCES.json`.

SENTENCES has {kind: [sentence, …]}. Asked for a kind of story ("Tell a Russian story."), the model generates text that
resembles sentences of that kind, and ends after some thirty of them; asked to "Think first.", it reasons before the
story. It has a byte-level vocabulary of its own, so a token has several letters of English and about one character of
Chinese.

The model is a table of which token follows which, with the frequencies of such stories: each token has a hidden
dimension, and the last layer has the logarithms of the frequencies. The only attention head computes the mean of all
tokens. From it the model knows the kind of story and whether it is reasoning, and so avoids the tokens of other kinds
and misplaced special tokens.
"""

import json
import random
import sys
from collections import Counter
from pathlib import Path

import torch
from tokenizers import AddedToken
from transformers import Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(Path(__file__).parent / "../engines"))
from model import tokenizer_for  # noqa: E402

CONTEXT, VOCABULARY, HIDDEN, HEAD = 4096, 1536, 1600, 32
TALES, SENTENCES, SENTENCES_THOUGHT = 300, 30, 8
TELL, PONDER, BEGIN = "<|tell|>", "<|ponder|>", "<|im_start|>"
# The logit of a token that never follows the last one; and that of a forbidden token, which must outweigh a mean that
# is divided by the length of the whole context.
NEVER, FORBIDDEN = -40.0, -40.0 * CONTEXT


def mark(kind: str) -> str:
    return f"<|{kind.replace(' ', '-')}|>"


def template_for(kinds: list[str]) -> str:
    chosen = "".join(f"{{%- if '{kind}' in asked %}}{{{{ '{mark(kind)}' }}}}{{%- endif %}}" for kind in kinds)
    return (
        "{%- set asked = messages[-1].content %}{{- '" + BEGIN + "user\n' + asked + '<|im_end|>\n' }}" + chosen +
        "{%- if 'Think first' in asked %}{{- '" + PONDER + "' }}{%- else %}{{- '" + TELL + "' }}{%- endif %}"
    )


def tale(said: list[str], mean: int) -> str:
    count = min(4 * mean, 1 + int(random.expovariate(1 / mean)))
    return "".join(random.choice(said) for _ in range(count)).strip()


def main(folder: str, sentences: str) -> None:
    random.seed(1)
    kinds: dict[str, list[str]] = json.loads(Path(sentences).read_text())
    # Kinds with few sentences get a higher weight, so that each kind gets its share of the vocabulary, and in no kind
    # is a whole word one token.
    weighed = [sentence for said in kinds.values() for sentence in said * (3 if len(said) > 10 else 8)]
    # As in OpenAI's cl100k vocabulary, European letters are tokens or parts of tokens, and a quarter of the Chinese
    # characters is split into several tokens.
    letters = {one for text in weighed for one in text if one > "\x7f" and (one < "\u0530" or ord(one) % 4)}
    tokenizer = tokenizer_for([json.dumps(list(kinds)), *weighed, *sorted(letters) * 200], VOCABULARY - 64)
    tokenizer.add_tokens([AddedToken(one, special=True) for one in (TELL, PONDER, *map(mark, kinds))])
    tokenizer.chat_template = template_for(list(kinds))
    tokenizer.model_max_length = CONTEXT
    id_of = tokenizer.convert_tokens_to_ids

    follows: dict[int, Counter] = {}
    of_kind: dict[str, set[int]] = {kind: set() for kind in kinds}
    for kind, said in kinds.items():
        for time in range(TALES):
            text = tale(said, SENTENCES) + "<|im_end|>"
            thought = f"{PONDER}<think>{tale(said, SENTENCES_THOUGHT)}</think>"
            told = (thought if time % 2 else TELL) + text
            ids = tokenizer.encode(told)
            of_kind[kind].update(ids)
            for one, other in zip(ids, ids[1:]):
                follows.setdefault(one, Counter())[other] += 1

    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=HEAD,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    model = Qwen3ForCausalLM(config).float()
    [layer] = model.model.layers
    # The value that the normalization layer gives to the 1 of a one-hot vector.
    scale = HIDDEN**0.5
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(1.0 if "norm" in name else 0.0)
        model.model.embed_tokens.weight[:, :VOCABULARY] = torch.eye(VOCABULARY)
        last = model.lm_head.weight
        last[:, :VOCABULARY] = NEVER / scale
        for one, counter in follows.items():
            for other, count in counter.items():
                last[other, one] = torch.tensor(count / counter.total()).log() / scale
        # The special tokens in the mean: each has a dimension of the attention head, and a hidden dimension after those
        # of the vocabulary.
        signs = [BEGIN, "<think>", "</think>", *map(mark, kinds)]
        at = {sign: VOCABULARY + index for index, sign in enumerate(signs)}
        for index, sign in enumerate(signs):
            layer.self_attn.v_proj.weight[index, id_of(sign)] = 1 / scale
            layer.self_attn.o_proj.weight[VOCABULARY + index, index] = 1
        for kind, own in of_kind.items():
            for other in set(range(VOCABULARY)) - own:
                last[other, at[mark(kind)]] = FORBIDDEN / scale
        # Reasoning can only end after it began, and the response cannot end while it is reasoning.
        for sign, share in ((BEGIN, 1), ("<think>", -1), ("</think>", 1)):
            last[id_of("</think>"), at[sign]] += share * FORBIDDEN / scale
        for sign, share in (("<think>", 1), ("</think>", -1)):
            last[tokenizer.eos_token_id, at[sign]] += share * FORBIDDEN / scale
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(*sys.argv[1:3])
