"""Generates a model with random weights: `python model.py FILE.gguf`. Nothing is downloaded.

Its text makes no sense, which is enough: an engine treats it as any other model, so the engine's handling of requests,
responses, limits and errors is real. Its vocabulary has every byte, so that any text and any grammar can be generated,
whole words with multi-byte characters, and the special tokens that chat templates use.
"""

import sys

import gguf
import numpy

EMBEDDING, LAYERS, HEADS, FEED_FORWARD, CONTEXT = 64, 2, 4, 128, 32768
SYLLABLES = ["ba", "de", "fi", "go", "ku", "la", "mi", "no", "po", "ra", "su", "ti", "vo", "we", "grü", "ße"]

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
MARKS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
WORDS = ["▁", "▁🌍", *[f"▁{first}{second}" for first in SYLLABLES for second in SYLLABLES]]
TOKENS = [*SPECIAL, *BYTES, *MARKS, *WORDS]


def token_types() -> list[int]:
    kinds = gguf.TokenType
    marks = [kinds.CONTROL, kinds.CONTROL, *[kinds.USER_DEFINED] * 4]
    special = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
    return [*special, *[kinds.BYTE] * len(BYTES), *marks, *[kinds.NORMAL] * len(WORDS)]


def main(path: str) -> None:
    random = numpy.random.default_rng(1)

    def weights(*shape: int) -> numpy.ndarray:
        return (random.standard_normal(shape) * 2 / numpy.sqrt(shape[-1])).astype(numpy.float32)

    model = gguf.GGUFWriter(path, "llama")
    model.add_name("random")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(EMBEDDING)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(FEED_FORWARD)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_rope_dimension_count(EMBEDDING // HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_vocab_size(len(TOKENS))
    model.add_file_type(gguf.LlamaFileType.ALL_F32)
    model.add_tokenizer_model("llama")
    model.add_token_list(TOKENS)
    model.add_token_scores([0.0] * len(TOKENS))
    model.add_token_types(token_types())
    model.add_unk_token_id(0)
    model.add_bos_token_id(1)
    model.add_eos_token_id(TOKENS.index("<|im_end|>"))
    model.add_add_bos_token(False)
    model.add_add_space_prefix(False)

    output = weights(len(TOKENS), EMBEDDING)
    # Bytes and special tokens get the neutral logit 0: so some texts are cut within a multi-byte character, but not
    # all.
    output[: len(TOKENS) - len(WORDS)] = 0
    model.add_tensor("token_embd.weight", weights(len(TOKENS), EMBEDDING) * numpy.float32(8))
    model.add_tensor("output_norm.weight", numpy.ones(EMBEDDING, numpy.float32))
    model.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            model.add_tensor(f"blk.{layer}.{norm}.weight", numpy.ones(EMBEDDING, numpy.float32))
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            model.add_tensor(f"blk.{layer}.{part}.weight", weights(EMBEDDING, EMBEDDING))
        for part in ("ffn_gate", "ffn_up"):
            model.add_tensor(f"blk.{layer}.{part}.weight", weights(FEED_FORWARD, EMBEDDING))
        model.add_tensor(f"blk.{layer}.ffn_down.weight", weights(EMBEDDING, FEED_FORWARD))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


if __name__ == "__main__":
    main(sys.argv[1])
