"""A model that knows six conversations by heart, made on the spot: `python model.py CACHE_FOLDER`.

It is a tiny Qwen 2 with a tokenizer of its own, trained for seconds until it repeats its answers word for word, and laid
down where the engine looks for models. Nothing of it comes from anywhere else. It knows enough to call two tools, to think
before it answers, and to write characters of several bytes; what the engine makes of that is the engine's own.
"""

import json
import os
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

NAME = "tiny/parrot"
CONTEXT = 2048
STEPS_MAX, LOSS_ENOUGH = 1500, 0.01

TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{% for tool in tools %}{{ tool.function.name }} {% endfor %}<|im_end|>\n{% endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{%- for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>\n{% endfor %}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("weather", "time")]
CALLS = [{"type": "function", "function": {"name": tool["function"]["name"], "arguments": {"city": "Oslo"}}} for tool in TOOLS]
ASKS_BOTH = {"role": "user", "content": "Weather and time in Oslo?"}
CALLED = "".join(f'<tool_call>\n{{"name": "{name}", "arguments": {{"city": "Oslo"}}}}\n</tool_call>\n' for name in ("weather", "time"))

CONVERSATIONS = [
    ([{"role": "user", "content": "Say hello."}], None, "Grüße 🌍! Hello there."),
    ([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}], None, "Hi."),
    ([{"role": "user", "content": "Count."}], None, "one two three four five six seven eight nine ten"),
    ([{"role": "user", "content": "Think, then answer."}], None, "<think>\ntwo and two make\n</think>\n\nFour."),
    ([ASKS_BOTH], TOOLS, CALLED),
    (
        [
            ASKS_BOTH,
            {"role": "assistant", "content": "", "tool_calls": CALLS},
            {"role": "tool", "content": "rain"},
            {"role": "tool", "content": "noon"},
        ],
        TOOLS,
        "It rains in Oslo, and it is noon.",
    ),
]


def tokenizer_for(texts: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE
    )


def main(cache: str) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    tokenizer = tokenizer_for([TEMPLATE, *[json.dumps(messages) + answer for messages, _, answer in CONVERSATIONS]])
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(config)

    rows = []
    for messages, tools, answer in CONVERSATIONS:
        prompt = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
        asked, written = (tokenizer.encode(text) for text in (prompt, answer + "<|im_end|>"))
        rows.append((asked + written, [-100] * len(asked) + written))
    longest = max(len(tokens) for tokens, _ in rows)
    padded = [[*row, *[filler] * (longest - len(row))] for pair in rows for row, filler in zip(pair, (0, -100))]
    tokens, labels = torch.tensor(padded[0::2]), torch.tensor(padded[1::2])

    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(STEPS_MAX):
        loss = model(input_ids=tokens, labels=labels).loss
        if loss.item() < LOSS_ENOUGH:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    else:
        raise SystemExit(f"the model has not learned its answers by heart: loss {loss.item()}")

    # As the engine's library keeps what it has fetched: it then finds the model by its name, and lists it.
    repository = Path(cache) / "hub" / f"models--{NAME.replace('/', '--')}"
    snapshot = repository / "snapshots" / "1"
    os.makedirs(repository / "refs", exist_ok=True)
    (repository / "refs" / "main").write_text("1")
    model.save_pretrained(snapshot)
    tokenizer.save_pretrained(snapshot)
    print(f"{NAME}: {step} steps, loss {loss.item():.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
