//! The `arpo-engine` executable: the embedded model, trainer and inference engine on libtorch,
//! and the wiring of a run with them.

mod model;

fn main() {}
