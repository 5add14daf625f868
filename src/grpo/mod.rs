//! The algorithm without tensors: advantages, replay, packing.
