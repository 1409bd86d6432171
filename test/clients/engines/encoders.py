"""Generates two tiny BERT models with random weights: `python encoders.py FOLDER`.

FOLDER/embedding computes vectors, FOLDER/ranking compares two texts (a cross-encoder). Each is written in the format of
infinity and vLLM, and as a GGUF file for llama.cpp. Their vocabulary (wordpieces.txt) was computed once from Sluice's
documents; nothing is downloaded. The weights have no meaning, but are large enough that different texts get different
vectors, so an engine's results can be compared number by number.
"""

import json
import sys
from pathlib import Path

import gguf
import numpy
import torch
from tokenizers import BertWordPieceTokenizer
from tokenizers.processors import BertProcessing
from transformers import BertConfig, BertForSequenceClassification, BertModel

CONTEXT = 512
WIDTH = 64
HERE = Path(__file__).parent
# The names of the classifier's tensors: the key is the one in PyTorch, the value the one in a GGUF file.
CLASSIFIER = {"pooler.dense": "cls", "classifier": "cls.output"}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_tokenizer(folder: Path, tokenizer: BertWordPieceTokenizer) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.save_model(str(folder))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL))
    about = {"tokenizer_class": "BertTokenizer", "model_max_length": CONTEXT, "do_lower_case": True, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    (folder / "special_tokens_map.json").write_text(json.dumps(names))


def write_pooling(folder: Path) -> None:
    """Writes the files by which sentence-transformers computes a vector: the mean of all tokens' vectors, scaled to
    length 1.
    """
    steps = ["", "1_Pooling", "2_Normalize"]
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (path, kind) in enumerate(zip(steps, kinds))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": CONTEXT, "do_lower_case": False}))
    for path in steps[1:]:
        (folder / path).mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def write_gguf(path: Path, model: torch.nn.Module, tokenizer: BertWordPieceTokenizer, pooling: gguf.PoolingType) -> None:
    config = model.config
    writer = gguf.GGUFWriter(str(path), "bert")
    writer.add_name(path.stem)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    names = {index: token for token, index in tokenizer.get_vocab().items()}
    tokens = [names.get(index, f"[PAD{index}]") for index in range(config.vocab_size)]
    # llama.cpp marks the first token of a word (▁), WordPiece the later ones (##).
    marked = [
        token if token in SPECIAL or index not in names else token[2:] if token.startswith("##") else f"▁{token}"
        for index, token in enumerate(tokens)
    ]
    kinds = gguf.TokenType
    types = [
        kinds.UNKNOWN if token == "[UNK]"
        else kinds.CONTROL if token in SPECIAL
        else kinds.NORMAL if index in names
        else kinds.UNUSED
        for index, token in enumerate(tokens)
    ]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_type_count(config.type_vocab_size)
    writer.add_token_list(marked)
    writer.add_token_types(types)
    for add, token in (
        (writer.add_pad_token_id, "[PAD]"),
        (writer.add_unk_token_id, "[UNK]"),
        (writer.add_bos_token_id, "[CLS]"),
        (writer.add_sep_token_id, "[SEP]"),
        (writer.add_eos_token_id, "[SEP]"),
        (writer.add_mask_token_id, "[MASK]"),
    ):
        add(tokenizer.token_to_id(token))
    names_of = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        stem, kind = name.removeprefix("bert.").rsplit(".", 1)
        known = CLASSIFIER.get(stem) or names_of.get_name(stem)
        writer.add_tensor(f"{known}.{kind}", tensor.numpy().astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder: Path) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    tokenizer = BertWordPieceTokenizer(str(HERE / "wordpieces.txt"), lowercase=True)
    marks = [(mark, tokenizer.token_to_id(mark)) for mark in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = BertProcessing(*marks)
    config = {
        "vocab_size": 1024,
        "hidden_size": WIDTH,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.4,
    }
    embedding = BertModel(BertConfig(**config), add_pooling_layer=False).float().eval()
    ranking = BertForSequenceClassification(BertConfig(**config, num_labels=1)).float().eval()
    for name, model, pooling in (
        ("embedding", embedding, gguf.PoolingType.MEAN),
        ("ranking", ranking, gguf.PoolingType.RANK),
    ):
        here = folder / name
        here.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(here)
        write_tokenizer(here, tokenizer)
        write_gguf(here / f"{name}.gguf", model, tokenizer, pooling)
    write_pooling(folder / "embedding")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
