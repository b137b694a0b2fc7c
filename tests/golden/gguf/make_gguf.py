"""Makes the GGUF files and results in this folder, with other people's programs alone.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install torch transformers accelerate gguf sentencepiece tokenizers safetensors
    /tmp/venv/bin/python tests/golden/gguf/make_gguf.py

types.gguf has a tensor of random blocks of every type, types.safetensors what the gguf package
dequantises them to. FAMILY.gguf is a tiny random model of each architecture, written by the gguf
package as llama.cpp's converter lays it out; FAMILY.safetensors has token ids and transformers'
logits for the same file. Where transformers does not read the architecture from GGUF, its model has
the weights that the gguf package dequantises. tokenizer-*.gguf have vocabularies alone, and
tokenizer-*.json the token ids that tokenizers and sentencepiece give for some texts.
"""

import io
import json
import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent
WIDTH, HIDDEN, LAYERS, VOCABULARY, CONTEXT, TOKENS = 32, 64, 2, 96, 64, 24
CYCLE = [Type.Q4_0, Type.Q8_0, Type.Q4_1, Type.F16, Type.Q5_0, Type.BF16, Type.Q5_1, Type.F32]


def common(**more):
    return dict(hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
                num_attention_heads=4, num_key_value_heads=2, vocab_size=VOCABULARY,
                max_position_embeddings=CONTEXT, bos_token_id=1, eos_token_id=2,
                pad_token_id=None) | more


ROPE_LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=32)

# Name: architecture of GGUF, configuration of transformers.
FAMILIES = {
    "llama": ("llama", transformers.LlamaConfig(**common(tie_word_embeddings=False))),
    "llama-tied": ("llama", transformers.LlamaConfig(**common(tie_word_embeddings=True))),
    "llama3-rope": ("llama", transformers.LlamaConfig(
        **common(tie_word_embeddings=False, rope_parameters=ROPE_LLAMA3))),
    "linear-rope": ("llama", transformers.LlamaConfig(**common(
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)))),
    "mistral": ("llama", transformers.MistralConfig(**common(sliding_window=8))),
    "qwen2": ("qwen2", transformers.Qwen2Config(**common())),
    "qwen3": ("qwen3", transformers.Qwen3Config(**common(head_dim=16))),
    "gemma": ("gemma", transformers.GemmaConfig(**common(head_dim=16))),
    "gemma2": ("gemma2", transformers.Gemma2Config(
        **common(head_dim=16, query_pre_attn_scalar=16, sliding_window=8,
                 attn_logit_softcapping=5.0, final_logit_softcapping=3.0))),
    "gemma3": ("gemma3", transformers.Gemma3TextConfig(
        **common(head_dim=16, query_pre_attn_scalar=16, sliding_window=8, num_hidden_layers=6,
                 layer_types=["sliding_attention"] * 5 + ["full_attention"]))),
    "gpt2": ("gpt2", transformers.GPT2Config(
        n_embd=WIDTH, n_inner=HIDDEN, n_layer=LAYERS, n_head=4, vocab_size=VOCABULARY,
        n_positions=CONTEXT, bos_token_id=1, eos_token_id=2)),
    "gptneox": ("gptneox", transformers.GPTNeoXConfig(
        **common(rotary_pct=0.5, use_parallel_residual=True))),
    "phi3": ("phi3", transformers.Phi3Config(**common(sliding_window=None))),
    "olmo2": ("olmo2", transformers.Olmo2Config(**common())),
}


def random_weights(model, draw):
    norms_around_zero = model.config.model_type.startswith("gemma")
    for name, parameter in model.named_parameters():
        noise = torch.tensor(draw.standard_normal(tuple(parameter.shape)), dtype=torch.float32)
        if parameter.dim() > 1:
            parameter.data = noise * 0.2
        elif "norm" in name or ".ln_" in name:
            gain = name.endswith("weight") and not norms_around_zero
            parameter.data = noise * 0.1 + (1.0 if gain else 0.0)
        else:
            parameter.data = noise * 0.1


def paired(weights, heads):
    """llama.cpp's order of a head's rows: the two that are turned together lie together."""
    return (weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
            .swapaxes(1, 2).reshape(weights.shape))


def as_llama_cpp_has_it(architecture, config, name, weights):
    if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        return paired(weights, heads)
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return weights + 1
    if architecture == "gpt2" and weights.ndim == 2 and ".h." in name:
        return weights.T
    if architecture == "gptneox" and "query_key_value" in name:
        heads = config.num_attention_heads
        return (weights.reshape(heads, 3, -1, *weights.shape[1:]).swapaxes(0, 1)
                .reshape(weights.shape))
    return weights


def back(architecture, config, name, weights):
    """The inverse, for architectures that transformers does not read itself."""
    if architecture == "gptneox" and "query_key_value" in name:
        heads = config.num_attention_heads
        return (weights.reshape(3, heads, -1, *weights.shape[1:]).swapaxes(0, 1)
                .reshape(weights.shape))
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return weights - 1
    if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        return (weights.reshape(heads, weights.shape[0] // heads // 2, 2, *weights.shape[1:])
                .swapaxes(1, 2).reshape(weights.shape))
    return weights


def add_metadata(writer, family, config):
    writer.add_name(family)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(
        config.n_inner if family == "gpt2" else config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if family in ("gpt2", "gptneox"):
        writer.add_layer_norm_eps(
            config.layer_norm_epsilon if family == "gpt2" else config.layer_norm_eps)
        if family == "gptneox":
            writer.add_rope_dimension_count(4)
            writer.add_parallel_residual(True)
        return
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if head != config.hidden_size // config.num_attention_heads:
        writer.add_key_length(head)
        writer.add_value_length(head)
    rope = config.rope_parameters
    if family == "gemma3":
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(head)
    if family == "linear-rope":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if family == "llama3-rope":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        inverse = 1.0 / rope["rope_theta"] ** (np.arange(0, head, 2) / head)
        scaled, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
        writer.add_tensor("rope_freqs.weight", (inverse / scaled.numpy()).astype(np.float32))
    if family in ("mistral", "gemma2", "gemma3"):
        writer.add_sliding_window(config.sliding_window)
    if family == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def make_family(family, seed):
    architecture, config = FAMILIES[family]
    config._attn_implementation = "eager"
    draw = np.random.default_rng(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    random_weights(model, draw)
    path = HERE / f"{family}.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    add_metadata(writer, family, config)
    arch = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    dequantised, place = {}, 0
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    for name, tensor in model.state_dict().items():
        if name in tied:
            continue
        weights = as_llama_cpp_has_it(architecture, config, name, tensor.numpy())
        kind = Type.F32
        if weights.ndim == 2:
            kind = CYCLE[place % len(CYCLE)]
            place += 1
        blocks = gguf.quants.quantize(np.ascontiguousarray(weights), kind)
        stem, suffix = name.rsplit(".", 1)
        writer.add_tensor(f"{names.get_name(stem)}.{suffix}", blocks, raw_dtype=kind)
        dequantised[name] = torch.tensor(
            back(architecture, config, name, gguf.quants.dequantize(blocks, kind)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    ids = draw.integers(0, VOCABULARY, (1, TOKENS))
    if family in ("mistral", "gemma", "gptneox", "olmo2"):
        missing, unexpected = model.load_state_dict(dequantised, strict=False)
        assert set(missing) <= tied and not unexpected, (family, missing, unexpected)
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            HERE, gguf_file=path.name, config=config, dtype=torch.float32,
            attn_implementation="eager").eval()
    model.tie_weights()
    with torch.no_grad():
        logits = model(torch.tensor(ids)).logits.numpy()
    save_file({"ids": ids.astype(np.int32), "logits": logits}, HERE / f"{family}.safetensors")
    print(f"{family}: {path.stat().st_size} bytes, logits {logits.std():.3f}")


def make_types():
    draw = np.random.default_rng(1)
    writer = gguf.GGUFWriter(HERE / "types.gguf", "llama")
    expected = {}
    rows, width = 2, 256
    halves = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2],
              Type.Q8_0: [0], Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2],
              Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0],
              Type.F16: [0]}
    for kind in [Type.F32, Type.BF16, *halves]:
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        if kind == Type.F32:
            blocks = draw.standard_normal((rows, width)).astype(np.float32)
        elif kind == Type.BF16:
            blocks = gguf.quants.quantize(
                draw.standard_normal((rows, width)).astype(np.float32), kind)
        else:
            # Every bit at random but those of the scales, which are finite and some of them tiny.
            blocks = draw.integers(0, 256, (rows * width // elements, size), dtype=np.uint8)
            for at in halves[kind]:
                scale = draw.standard_normal(len(blocks)) * 10.0 ** draw.integers(
                    -7, 2, len(blocks))
                blocks[:, at:at + 2] = scale.astype(np.float16).view(np.uint8).reshape(-1, 2)
            blocks = blocks.reshape(rows, -1)
            if kind == Type.F16:
                blocks = blocks.view(np.float16)
        writer.add_tensor(kind.name, blocks, raw_dtype=kind)
        expected[kind.name] = gguf.quants.dequantize(blocks, kind).astype(np.float32).reshape(
            rows, width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, HERE / "types.safetensors")


TRAINING_TEXT = """
The lighthouse keeper wrote down every ship that passed: 12 on Monday, 340 in the whole of 1987, and
none at all on the day of the storm. It's the quiet that he'd remember, they're told; we'll see what
the others say. In the harbour the boats were counted again, 7 of them, then 77, then 777.
Der Leuchtturm stand auf der Klippe, weiß und alt. El faro está cerrado; la niña miró el mar.
def count(ships):
    total = 0
    for ship in ships:
        total += ship.size * 2
    return total
""" * 4

TEXTS = [
    "", "a", " ", "The lighthouse keeper", " The lighthouse", "  two spaces", "tab\tand\nnewline\n\n",
    "In 1987 there were 340 ships,  12 of them new.", "1234567890", "a1b22c333", "  7", "7  ", "  7 7",
    "x = 10\n    y  = 2", "it's THEY'RE we'll", "\u00e9t\u00e9 na\u00efve \u00fcber", "\u65e5\u672c\u8a9e \u6587\u5b57",
    "emoji \U0001f600\U0001f468\u200d\U0001f469", "\u00bd \u0663 \u2167 numbers", "trailing   ",
    "<|im_start|>user\nhi<|im_end|>\n", "a<|im_end|> b", "\u2581already", "a\u00a0b", "\r\n\r\nx", "!!?! ...",
]


def write_vocabulary(name, fill):
    path = HERE / f"{name}.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    fill(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def make_byte_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator([TRAINING_TEXT], trainers.BpeTrainer(
        vocab_size=400, special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    written = json.loads(tokenizer.to_str())
    vocabulary = sorted(written["model"]["vocab"], key=written["model"]["vocab"].get)

    def fill(writer):
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("smollm")
        writer.add_token_list(vocabulary)
        writer.add_token_types([gguf.TokenType.CONTROL if token in special
                                else gguf.TokenType.NORMAL for token in vocabulary])
        writer.add_token_merges([" ".join(pair) for pair in written["model"]["merges"]])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_add_bos_token(False)
        writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")

    write_vocabulary("tokenizer-smollm", fill)
    folder = HERE / "tokenizer-smollm"
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
             for text in TEXTS]
    (HERE / "tokenizer-smollm.json").write_text(json.dumps(cases, indent=1))


def make_scored_tokenizer():
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING_TEXT.splitlines()), model_writer=model, model_type="bpe",
        vocab_size=440, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True, minloglevel=2,
        user_defined_symbols=["<|im_start|>", "<|im_end|>"])
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kinds = []
    for i in range(pieces.vocab_size()):
        kinds.append(gguf.TokenType.UNKNOWN if pieces.is_unknown(i)
                     else gguf.TokenType.CONTROL if pieces.is_control(i)
                     else gguf.TokenType.BYTE if pieces.is_byte(i)
                     else gguf.TokenType.USER_DEFINED if pieces.id_to_piece(i).startswith("<|")
                     else gguf.TokenType.NORMAL)

    def fill(writer):
        writer.add_tokenizer_model("llama")
        writer.add_token_list([pieces.id_to_piece(i) for i in range(pieces.vocab_size())])
        writer.add_token_scores([pieces.get_score(i) for i in range(pieces.vocab_size())])
        writer.add_token_types(kinds)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)

    path = write_vocabulary("tokenizer-scores", fill)
    tokenizer = transformers.AutoTokenizer.from_pretrained(HERE, gguf_file=path.name)
    cases, same = [], 0
    for text in TEXTS:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        same += ids == pieces.encode(text)
        cases.append({"text": text, "ids": ids})
    print(f"tokenizer-scores: transformers and sentencepiece agree on {same} of {len(TEXTS)} texts")
    (HERE / "tokenizer-scores.json").write_text(json.dumps(cases, indent=1))


if __name__ == "__main__":
    make_types()
    make_byte_tokenizer()
    make_scored_tokenizer()
    for number, each in enumerate(FAMILIES):
        make_family(each, number + 10)
