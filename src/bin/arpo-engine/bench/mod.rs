//! Figures of the embedded engine and trainer beside those of a peer doing the same work.

mod decode;
mod peer;
mod train;

use std::process::ExitCode;

use anyhow::bail;
use arpo::cli::bench::{Args, Bench, PeerArgs};
use arpo::cli::{note, say, wiring};

/// Runs `arpo bench`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        Bench::Rollout(_) => bail!("it needs no libtorch: run `arpo bench rollout`"),
        Bench::Console(_) => bail!("it needs no libtorch: run `arpo bench console`"),
        Bench::Watched(_) => bail!("it starts engines itself: run `arpo bench watched`"),
        Bench::Decode(args) => compare_decoding(args)?,
        Bench::Train(args) => compare_training(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn compare_decoding(args: &PeerArgs) -> anyhow::Result<()> {
    let profile = args.resolve()?;
    let report = decode::run(&wiring::checkpoint_path(&profile))?;
    for batch in &report.batches {
        note(format!(
            "batch {}: {:.2} of generate's time, {:.2} of the loop's; {:.0} tokens/s",
            batch.batch, batch.ratio_generate, batch.ratio_loop, batch.tokens_per_s
        ));
    }
    note(format!(
        "15 steps: {} of {} screenshots encoded, {} tokens prefilled of {} given",
        report.images_encoded, report.images_seen, report.tokens_prefilled, report.tokens_new
    ));
    if args.json {
        say(serde_json::to_string(&report)?);
    }
    Ok(())
}

fn compare_training(args: &PeerArgs) -> anyhow::Result<()> {
    let profile = args.resolve()?;
    let report = train::run(&profile)?;
    note(format!(
        "{} trajectories, {} tokens, {} of them sampled",
        report.trajectories, report.tokens, report.tokens_sampled
    ));
    for threads in &report.by_threads {
        note(format!(
            "{} threads: {:.0} ms an update, {:.2} of the loop's time",
            threads.threads,
            threads.update_s * 1e3,
            threads.ratio
        ));
    }
    if args.json {
        say(serde_json::to_string(&report)?);
    }
    Ok(())
}
