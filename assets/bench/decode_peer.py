"""What `arpo bench decode` is compared with: the same checkpoint in PyTorch, on one thread.

    decode_peer.py CHECKPOINT INPUTS

INPUTS is a safetensors file: input_ids [batch, seq], pixel_values [patches, patch_dim] and
grid_thw [batch, 3], one picture a row, all of one size. Each line on stdin is a JSON request
{"peer": "generate" | "loop", "batch": n, "new_tokens": n}; each line on stdout its answer
{"seconds": s, "ids": [[...]]}. Both peers encode the pictures, prefill and decode greedily.

- generate: `transformers`' own.
- loop: what one would write by hand: preallocated KV, one batched call a layer and token.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import Qwen2_5_VLForConditionalGeneration


class Generate:
    def __init__(self, model):
        self.model = model
        # Replies have a fixed length here.
        model.generation_config.eos_token_id = None
        model.generation_config.pad_token_id = 0

    def __call__(self, input_ids, pixel_values, grid_thw, new_tokens):
        token_types = (input_ids == self.model.config.image_token_id).int()
        out = self.model.generate(
            input_ids=input_ids,
            attention_mask=torch.ones_like(input_ids),
            pixel_values=pixel_values,
            image_grid_thw=grid_thw,
            mm_token_type_ids=token_types,
            max_new_tokens=new_tokens,
            do_sample=False,
        )
        return out[:, input_ids.shape[1] :]


class Loop:
    def __init__(self, model):
        self.model = model
        self.text = model.model.language_model
        self.config = model.config.text_config
        self.heads = self.config.num_attention_heads
        self.kv_heads = self.config.num_key_value_heads
        self.head_dim = self.config.hidden_size // self.heads
        self.layers = []
        for layer in self.text.layers:
            attention = layer.self_attn
            parts = [attention.q_proj, attention.k_proj, attention.v_proj]
            qkv = torch.cat([part.weight for part in parts])
            qkv_bias = torch.cat([part.bias for part in parts])
            gate_up = torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight])
            self.layers.append((layer, qkv, qkv_bias, gate_up))

    def turn(self, x, cos, sin):
        half = self.head_dim // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def layer(self, index, hidden, rotary, cache, start, end):
        layer, qkv, qkv_bias, gate_up = self.layers[index]
        batch, seq, width = hidden.shape
        eps = self.config.rms_norm_eps
        normed = F.rms_norm(hidden, (width,), layer.input_layernorm.weight, eps)
        qkv = F.linear(normed, qkv, qkv_bias).view(batch, seq, -1, self.head_dim).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 1)
        q, k = self.turn(q, *rotary), self.turn(k, *rotary)
        keys, values = cache[index]
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        attended = F.scaled_dot_product_attention(
            q, keys[:, :, :end], values[:, :, :end], is_causal=start == 0, enable_gqa=True
        )
        attended = attended.transpose(1, 2).reshape(batch, seq, width)
        hidden = hidden + F.linear(attended, layer.self_attn.o_proj.weight)
        normed = F.rms_norm(hidden, (width,), layer.post_attention_layernorm.weight, eps)
        gate, up = F.linear(normed, gate_up).chunk(2, -1)
        return hidden + F.linear(F.silu(gate) * up, layer.mlp.down_proj.weight)

    def next_ids(self, embeds, positions, cache, start):
        cos, sin = self.text.rotary_emb(embeds, positions)
        rotary = cos.unsqueeze(1), sin.unsqueeze(1)
        hidden = embeds
        for index in range(len(self.layers)):
            hidden = self.layer(index, hidden, rotary, cache, start, start + embeds.shape[1])
        width = hidden.shape[-1]
        hidden = F.rms_norm(
            hidden[:, -1], (width,), self.text.norm.weight, self.config.rms_norm_eps
        )
        return F.linear(hidden, self.model.lm_head.weight).argmax(-1)

    def __call__(self, input_ids, pixel_values, grid_thw, new_tokens):
        batch, seq = input_ids.shape
        is_image = input_ids == self.model.config.image_token_id
        positions, deltas = self.model.model.get_rope_index(
            input_ids, mm_token_type_ids=is_image.int(), image_grid_thw=grid_thw
        )
        features = self.model.model.get_image_features(pixel_values, grid_thw).pooler_output
        embeds = self.text.embed_tokens(input_ids)
        embeds = embeds.masked_scatter(is_image.unsqueeze(-1), torch.cat(tuple(features)))
        shape = (batch, self.kv_heads, seq + new_tokens, self.head_dim)
        cache = [(torch.empty(shape), torch.empty(shape)) for _ in self.layers]
        ids = self.next_ids(embeds, positions, cache, 0)
        out = [ids]
        for step in range(new_tokens - 1):
            positions = (seq + step + deltas).expand(3, batch, 1)
            embeds = self.text.embed_tokens(ids).unsqueeze(1)
            ids = self.next_ids(embeds, positions, cache, seq + step)
            out.append(ids)
        return torch.stack(out, 1)


def main(checkpoint, inputs):
    torch.set_num_threads(1)
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32)
    model.eval()
    tensors = load_file(inputs)
    patches = tensors["pixel_values"].shape[0] // tensors["input_ids"].shape[0]
    peers = {"generate": Generate(model), "loop": Loop(model)}
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        batch = request["batch"]
        with torch.inference_mode():
            start = time.perf_counter()
            ids = peers[request["peer"]](
                tensors["input_ids"][:batch],
                tensors["pixel_values"][: batch * patches],
                tensors["grid_thw"][:batch],
                request["new_tokens"],
            )
            ids = ids.tolist()
        print(json.dumps({"seconds": time.perf_counter() - start, "ids": ids}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
