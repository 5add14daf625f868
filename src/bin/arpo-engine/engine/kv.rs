//! KV memory: slots of fixed length, one a session, in chunks made on demand up to a budget.
//!
//! A slot is contiguous per head, so that a batch whose slots lie side by side attends on a view,
//! without gathering. Who is evicted is the lane's business, not this module's.
//!
//! Invariant: memory is zeroed once, when its chunk is made, so that what a mask hides is always
//! finite (0 * NaN would not be).

use tch::{Device, Kind, Tensor};

use crate::model::Weights;
use crate::model::qwen2_5_vl::fused::LayerKv;

/// Bytes of a chunk, about: one chunk holds a whole lane of the tiny agent's sessions, and a
/// full-size model gets chunks of one slot.
const CHUNK_BYTES: usize = 128 << 20;

/// A slot of a `KvCache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Its chunk.
    pub chunk: usize,
    /// Its place within.
    pub place: usize,
}

/// All KV memory of one lane.
#[derive(Debug)]
pub struct KvCache {
    chunks: Vec<Chunk>,
    max_chunks: usize,
    slot_bytes: usize,
    /// `[layers, 2, slots, kv_heads, max_len, head_dim]`, keys before values.
    chunk_shape: [i64; 6],
    device: Device,
    kind: Kind,
}

/// Slots made together.
#[derive(Debug)]
struct Chunk {
    /// `[layers, 2, slots, kv_heads, max_len, head_dim]`, keys before values.
    storage: Tensor,
    layers: Vec<LayerKv>,
    used: Vec<bool>,
}

impl KvCache {
    /// Memory for sessions of up to `max_len` tokens, at most `budget_bytes`, but at least one
    /// slot.
    pub fn new(weights: &Weights, max_len: usize, max_slots: usize, budget_bytes: usize) -> Self {
        let text = &weights.config.text;
        let slot_shape = [
            text.num_hidden_layers,
            2,
            text.num_key_value_heads,
            max_len as i64,
            text.head_dim(),
        ];
        let kind = weights.kind();
        let slot_bytes = slot_shape.iter().product::<i64>() as usize * kind.elt_size_in_bytes();
        let budget_slots = (budget_bytes / slot_bytes).max(1);
        let slots_per_chunk = (CHUNK_BYTES / slot_bytes).clamp(1, max_slots.min(budget_slots));
        let [layers, both, heads, max_len, head_dim] = slot_shape;
        Self {
            chunks: Vec::new(),
            max_chunks: budget_slots / slots_per_chunk,
            slot_bytes,
            chunk_shape: [
                layers,
                both,
                slots_per_chunk as i64,
                heads,
                max_len,
                head_dim,
            ],
            device: weights.device(),
            kind,
        }
    }

    /// The first free slot; `None` if the budget is used up.
    pub fn acquire(&mut self) -> Option<Slot> {
        for (chunk, Chunk { used, .. }) in self.chunks.iter_mut().enumerate() {
            if let Some(place) = used.iter().position(|used| !used) {
                used[place] = true;
                return Some(Slot { chunk, place });
            }
        }
        if self.chunks.len() == self.max_chunks {
            return None;
        }
        self.chunks
            .push(Chunk::new(self.chunk_shape, self.kind, self.device));
        self.acquire()
    }

    /// Gives a slot back.
    pub fn release(&mut self, slot: Slot) {
        self.chunks[slot.chunk].used[slot.place] = false;
    }

    /// Copies the first `len` tokens of one slot to another.
    pub fn copy(&mut self, from: Slot, to: Slot, len: usize) {
        let view = |slot: Slot| {
            let storage = &self.chunks[slot.chunk].storage;
            storage
                .select(2, slot.place as i64)
                .narrow(3, 0, len as i64)
        };
        view(to).copy_(&view(from));
    }

    /// The layers of a chunk.
    pub fn layers(&self, chunk: usize) -> &[LayerKv] {
        &self.chunks[chunk].layers
    }

    /// Rows of `LayerKv::rows` that hold the heads of the token at `position` of `slot`, keys
    /// before values.
    pub fn rows_of(&self, slot: Slot, position: usize) -> impl Iterator<Item = i64> + use<> {
        let [_, both, slots, heads, max_len, _] = self.chunk_shape;
        let first = slot.place as i64 * heads;
        (0..both).flat_map(move |kind| {
            let first = kind * slots * heads + first;
            (first..first + heads).map(move |head| head * max_len + position as i64)
        })
    }

    /// Bytes of the slots in use.
    pub fn bytes_in_use(&self) -> usize {
        let used = self
            .chunks
            .iter()
            .flat_map(|chunk| &chunk.used)
            .filter(|used| **used);
        used.count() * self.slot_bytes
    }
}

impl Chunk {
    fn new(shape: [i64; 6], kind: Kind, device: Device) -> Self {
        let [layers, _, slots, _, _, head_dim] = shape;
        let storage = Tensor::zeros(shape, (kind, device));
        let layer_kv = |layer_idx| {
            let layer: Tensor = storage.get(layer_idx); // [2, slots, kv_heads, max_len, head_dim]
            LayerKv {
                keys: layer.get(0),
                values: layer.get(1),
                rows: layer.view([-1, head_dim]),
            }
        };
        let layers = (0..layers).map(layer_kv).collect();
        Self {
            layers,
            storage,
            used: vec![false; slots as usize],
        }
    }
}
