"""Generates a tiny Qwen 3 model that has learned eight conversations by heart: `python model.py FOLDER`.

FOLDER gets the model in the format of vLLM and transformers, and `tiny.gguf` for llama.cpp. It has two layers, a
byte-level tokenizer (merges.txt, computed once from Sluice's documents), and a chat template with reasoning and tool
calls (template.jinja); nothing is downloaded. The model can reason, call two tools in one response, read their results,
and write multi-byte characters; the engine's real code turns that into its protocol.
"""

import json
import sys
import time
from pathlib import Path

import gguf
import numpy
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

CONTEXT = 65536
VOCABULARY = 2048
STEPS_MAX, SECONDS_MAX, LOSS_ENOUGH = 1500, 240, 0.005
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# The tokens for fill-in-the-middle. llama.cpp recognizes them by these names; the model was not trained on them.
FILL = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
HERE = Path(__file__).parent
TEMPLATE = (HERE / "template.jinja").read_text()

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": CITY}}
    for name, about in (("weather", "The weather."), ("time", "The time."))
]
CALLS = [
    {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": {"city": "Oslo"}}}
    for index, name in enumerate(("weather", "time"), start=1)
]

NUMBERS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def result(index: int, text: str) -> dict:
    return {"role": "tool", "tool_call_id": f"call_{index}", "content": text}


def called(*names: str) -> str:
    return "\n".join(f'<tool_call>\n{{"name": "{name}", "arguments": {{"city": "Oslo"}}}}\n</tool_call>' for name in names)


def answer(thought: str, text: str) -> str:
    return f"<think>\n{thought}\n</think>\n\n{text}"


ASKS_BOTH = user("Weather and time in Oslo?")
CALLS_BOTH = {"role": "assistant", "content": "", "reasoning_content": "I need two tools.", "tool_calls": CALLS}
# The assistant's message without its reasoning, because some engines drop the reasoning of earlier turns.
CALLS_WITHOUT_THOUGHT = {"role": "assistant", "content": "", "tool_calls": CALLS}
RESULTS = [result(1, "rain"), result(2, "noon")]
HELLO_AND_GOODBYE = [user("Say hello."), {"role": "assistant", "content": "Hello."}, user("And goodbye.")]

CONVERSATIONS = [
    ([user("Say hello.")], None, answer("They want a greeting.", "Grüße 🌍! Hello there.")),
    ([user("Count.")], None, answer("I count.", NUMBERS)),
    ([user("Count three times.")], None, answer("I count again.", "\n".join([NUMBERS] * 3))),
    ([ASKS_BOTH], TOOLS, answer("I need two tools.", called("weather", "time"))),
    ([user("Time in Oslo?")], TOOLS, answer("I need one tool.", called("time"))),
    ([ASKS_BOTH, CALLS_BOTH, *RESULTS], TOOLS, answer("Now I know.", "It rains in Oslo, and it is noon.")),
    ([ASKS_BOTH, CALLS_WITHOUT_THOUGHT, *RESULTS], TOOLS, answer("Now I know.", "It rains in Oslo, and it is noon.")),
    (HELLO_AND_GOODBYE, None, answer("A farewell.", "Goodbye, grüß Gott! 🌍🌍")),
]


def tokenizer_for(merges: list[tuple[str, str]]) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = SPECIAL + alphabet + [left + right for left, right in merges]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(vocabulary)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
        model_max_length=CONTEXT,
    )


def trained(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    model = Qwen3ForCausalLM(config).float()
    rows = []
    for messages, tools, said in CONVERSATIONS:
        prompt = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
        asked, told = tokenizer.encode(prompt), tokenizer.encode(said + "<|im_end|>")
        rows.append((asked + told, [-100] * len(asked) + told))
    longest = max(len(ids) for ids, _ in rows)
    inputs = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
    labels = torch.tensor([told + [-100] * (longest - len(told)) for _, told in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    began = time.monotonic()
    for _ in range(STEPS_MAX):
        loss = model(input_ids=inputs, labels=labels).loss
        if loss.item() < LOSS_ENOUGH or time.monotonic() - began > SECONDS_MAX:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if loss.item() > 0.05:
        sys.exit(f"the model did not learn its conversations: loss {loss.item()}")
    return model


def write_gguf(path: Path, model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    config = model.config
    writer = gguf.GGUFWriter(str(path), "qwen3")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    bpe = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    names = {index: token for token, index in tokenizer.get_vocab().items()}
    names |= dict(zip(range(len(names), VOCABULARY), FILL))
    tokens = [names.get(index, f"[PAD{index}]") for index in range(VOCABULARY)]
    kinds = gguf.TokenType
    types = [
        kinds.CONTROL if token in SPECIAL + FILL
        else kinds.USER_DEFINED if token in MARKS
        else kinds.NORMAL if index in names
        else kinds.UNUSED
        for index, token in enumerate(tokens)
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(pair) for pair in bpe["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    names_of = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        stem, kind = name.rsplit(".", 1)
        writer.add_tensor(f"{names_of.get_name(stem)}.{kind}", tensor.numpy().astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder: str) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    merges = [tuple(line.split(" ")) for line in (HERE / "merges.txt").read_text("utf-8").splitlines()]
    tokenizer = tokenizer_for(merges)
    model = trained(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_gguf(Path(folder) / "tiny.gguf", model, tokenizer)


if __name__ == "__main__":
    main(sys.argv[1])
