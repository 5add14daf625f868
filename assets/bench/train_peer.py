"""What `arpo bench train` is compared with: the same update in PyTorch, batched by hand.

    train_peer.py CHECKPOINT INPUTS

INPUTS is a safetensors file with trajectories one after another: ids, mask (1 where the loss is)
and old_logprobs (one a masked token); lengths, advantages and weights, one a trajectory;
positions [3, tokens]; features [merged, hidden] of the screenshots, whose tower is frozen. Each
line on stdin is a JSON request (threads, fresh, and the loss's and optimizer's constants), each
line on stdout its answer {"seconds": s, "grad_norm": g, "layout": name}. `fresh` starts from the
checkpoint.

Padding, positions and masks are prepared before the clock starts. Trajectories are padded either
all to the longest (whole) or in batches of similar length (grouped); a fresh start tries both and
goes on with the faster. Norms, attention and AdamW are torch's fused ones.
"""

import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import Qwen2_5_VLForConditionalGeneration

# Rows of a batch may be shorter than its longest by this share.
MAX_PADDING = 0.2


class Batch:
    """Some trajectories, padded on the right."""

    def __init__(self, rows, image_token_id):
        longest = max(len(row["ids"]) for row in rows)
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        positions = torch.zeros(3, len(rows), longest, dtype=torch.long)
        places, wanted = [], []
        for index, row in enumerate(rows):
            length = len(row["ids"])
            ids[index, :length] = row["ids"]
            positions[:, index, :length] = row["positions"]
            at = row["mask"].nonzero().squeeze(-1)
            # The state before a token predicts it.
            places.append(index * longest + at - 1)
            wanted.append(row["ids"][at])
        self.ids = ids
        self.positions = positions
        self.is_image = (ids == image_token_id).unsqueeze(-1)
        self.places = torch.cat(places)
        self.wanted = torch.cat(wanted).unsqueeze(-1)
        self.features = torch.cat([row["features"] for row in rows])
        self.old_logprobs = torch.cat([row["old_logprobs"] for row in rows])
        counts = torch.tensor([len(row["old_logprobs"]) for row in rows])
        self.advantages = torch.stack([row["advantage"] for row in rows]).repeat_interleave(counts)
        self.weights = torch.stack([row["weight"] for row in rows]).repeat_interleave(counts)


def split_rows(tensors, image_token_id):
    rows, token, picture, sampled = [], 0, 0, 0
    for index, length in enumerate(tensors["lengths"].tolist()):
        here = slice(token, token + length)
        ids, mask = tensors["ids"][here], tensors["mask"][here]
        num_merged = int((ids == image_token_id).sum())
        num_sampled = int(mask.sum())
        rows.append(
            {
                "ids": ids,
                "mask": mask,
                "positions": tensors["positions"][:, here],
                "features": tensors["features"][picture : picture + num_merged],
                "old_logprobs": tensors["old_logprobs"][sampled : sampled + num_sampled],
                "advantage": tensors["advantages"][index],
                "weight": tensors["weights"][index],
            }
        )
        token, picture, sampled = token + length, picture + num_merged, sampled + num_sampled
    return sorted(rows, key=lambda row: -len(row["ids"]))


def group_rows(rows):
    groups = []
    for row in rows:
        if groups and len(groups[-1][0]["ids"]) * (1 - MAX_PADDING) <= len(row["ids"]):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


class Loop:
    def __init__(self, checkpoint):
        model = Qwen2_5_VLForConditionalGeneration.from_pretrained(checkpoint, dtype=torch.float32)
        self.config = model.config.text_config
        self.image_token_id = model.config.image_token_id
        self.text = model.model.language_model
        self.head = model.lm_head.weight
        self.heads = self.config.num_attention_heads
        self.kv_heads = self.config.num_key_value_heads
        self.head_dim = self.config.hidden_size // self.heads
        self.params = [*self.text.parameters()]
        if not any(self.head is param for param in self.params):
            self.params.append(self.head)
        self.saved = [param.detach().clone() for param in self.params]
        self.optimizer = None

    def start(self, request):
        with torch.no_grad():
            for param, saved in zip(self.params, self.saved):
                param.copy_(saved)
        self.optimizer = torch.optim.AdamW(
            self.params,
            lr=request["lr"],
            betas=tuple(request["betas"]),
            eps=request["eps"],
            weight_decay=request["weight_decay"],
            fused=True,
        )

    def turn(self, x, cos, sin):
        half = self.head_dim // 2
        return torch.addcmul(x * cos, x.roll(half, -1), sin)

    def norm(self, x, weight):
        return F.rms_norm(x, (x.shape[-1],), weight, self.config.rms_norm_eps)

    def split(self, x):
        batch, seq, _ = x.shape
        return x.view(batch, seq, -1, self.head_dim).transpose(1, 2)

    def layer(self, layer, hidden, cos, sin):
        attention, mlp = layer.self_attn, layer.mlp
        normed = self.norm(hidden, layer.input_layernorm.weight)
        q = self.turn(self.split(attention.q_proj(normed)), cos, sin)
        k = self.turn(self.split(attention.k_proj(normed)), cos, sin)
        v = self.split(attention.v_proj(normed))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        hidden = hidden + attention.o_proj(seen.transpose(1, 2).flatten(2))
        normed = self.norm(hidden, layer.post_attention_layernorm.weight)
        return hidden + mlp.down_proj(F.silu(mlp.gate_proj(normed)) * mlp.up_proj(normed))

    def logprobs(self, batch, temperature):
        hidden = self.text.embed_tokens(batch.ids).masked_scatter(batch.is_image, batch.features)
        cos, sin = self.text.rotary_emb(hidden, batch.positions)
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        # As `rotate_half` has it: the rolled first half is negated.
        sin = torch.cat((-sin[..., : self.head_dim // 2], sin[..., self.head_dim // 2 :]), -1)
        for layer in self.text.layers:
            hidden = self.layer(layer, hidden, cos, sin)
        hidden = hidden.flatten(0, 1)[batch.places]
        logits = F.linear(self.norm(hidden, self.text.norm.weight), self.head)
        logits[:, self.image_token_id] = -math.inf
        if temperature != 1.0:
            logits = logits / temperature
        return logits.log_softmax(-1).gather(-1, batch.wanted).squeeze(-1)

    def loss(self, batch, request):
        logprobs = self.logprobs(batch, request["temperature"])
        log_ratio = logprobs - batch.old_logprobs
        low, high = math.log(1 - request["clip_low"]), math.log(1 + request["clip_high"])
        gain = -batch.advantages
        loss = torch.maximum(gain * log_ratio.exp(), gain * log_ratio.clamp(low, high).exp())
        bounded = torch.minimum(loss, gain * request["clip_dual"])
        loss = torch.where(batch.advantages < 0, bounded, loss)
        return (loss * batch.weights).sum()

    def update(self, batches, request):
        start = time.perf_counter()
        for batch in batches:
            self.loss(batch, request).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.params, request["grad_clip_norm"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        grad_norm = float(norm)
        return time.perf_counter() - start, grad_norm


def main(checkpoint, inputs):
    loop = Loop(checkpoint)
    tensors = load_file(inputs)
    merged = int((tensors["ids"] == loop.image_token_id).sum())
    assert merged == len(tensors["features"]), "a feature for each placeholder"
    rows = split_rows(tensors, loop.image_token_id)
    layouts = {"grouped": group_rows(rows), "whole": [rows]}
    layouts = {
        name: [Batch(rows, loop.image_token_id) for rows in groups]
        for name, groups in layouts.items()
    }
    layout = "grouped"
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        torch.set_num_threads(request["threads"])
        if request["fresh"]:
            times = {}
            for name, batches in layouts.items():
                loop.start(request)
                loop.update(batches, request)
                times[name] = min(loop.update(batches, request)[0] for _ in range(2))
            layout = min(times, key=times.get)
            loop.start(request)
        seconds, grad_norm = loop.update(layouts[layout], request)
        answer = {"seconds": seconds, "grad_norm": grad_norm, "layout": layout}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
