//! The `arpo` executable. It never names libtorch; what needs it is exec'ed as `arpo-engine`.

use std::process::ExitCode;

fn main() -> ExitCode {
    arpo::cli::main()
}
