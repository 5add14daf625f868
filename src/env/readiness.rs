//! Waiting for a machine that starts until its server does what an episode asks of it.
//!
//! A server that gives a picture need not run programs yet, and a published port takes connections
//! before anybody listens behind it: all layers are asked, and programs run several times.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Reporter;
use super::guest::{Command, Guest};
use crate::http::with_causes;
use crate::types::MachinePhase;

/// Looks at a screen of the wrong size, one after the other, before it is believed: a session may
/// set its size late.
const WRONG_LOOKS: u32 = 10;

/// How a machine is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    /// The longest, for all of it.
    pub(super) limit: Duration,
    /// Between two looks.
    pub(super) poll: Duration,
    /// Programs that have to run, one after another.
    pub(super) probes: u32,
    /// What comes after the limit, for the operator.
    pub(super) then: &'a str,
    /// The keys of the profile that say how large its screen is.
    pub(super) screen_keys: &'a str,
}

/// Why a machine is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotReady {
    /// In words, with what to do where that is known.
    pub(super) reason: String,
    /// Whether another start would end in the same.
    pub(super) is_lasting: bool,
}

/// Waits until all layers work, and tells which one is waited for.
pub(super) async fn wait(
    guest: &Guest,
    reporter: &Reporter,
    patience: Patience<'_>,
) -> Result<(), NotReady> {
    let deadline = Instant::now() + patience.limit;
    let mut waits_for = String::new();
    let mut wrong_looks = 0;
    let mut told: Option<(MachinePhase, Duration)> = None;
    loop {
        let looked = timeout_at(deadline, look(guest, patience)).await;
        let Ok(found) = looked else {
            return Err(late(patience, &waits_for));
        };
        let Some(found) = found else {
            return Ok(());
        };
        wrong_looks = if found.wrong_size.is_some() {
            wrong_looks + 1
        } else {
            0
        };
        if let (Some(size), WRONG_LOOKS..) = (found.wrong_size, wrong_looks) {
            let keys = patience.screen_keys;
            return Err(NotReady {
                reason: format!("{size}: set its resolution, or {keys}"),
                is_lasting: true,
            });
        }
        if found.layer != waits_for.split(':').next().unwrap_or_default() {
            let phase = match found.layer {
                "tcp" | "http" => MachinePhase::Booting,
                _ => MachinePhase::Checking,
            };
            let detail = format!("waits for {}", found.layer);
            // Whoever shows it counts from the beginning of the phase.
            if told.is_none_or(|(known, _)| known != phase) {
                told = Some((phase, deadline.saturating_duration_since(Instant::now())));
            }
            let limit = told.map(|(_, limit)| limit);
            reporter.status(phase, limit, patience.then, &detail);
        }
        waits_for = format!("{}: {}", found.layer, found.error);
        if Instant::now() + patience.poll >= deadline {
            return Err(late(patience, &waits_for));
        }
        sleep(patience.poll).await;
    }
}

fn late(patience: Patience<'_>, waits_for: &str) -> NotReady {
    let limit_s = patience.limit.as_secs_f64();
    let what = match waits_for {
        "" => "its server says nothing".to_owned(),
        layer => format!("{layer} (the layer that does not work yet)"),
    };
    NotReady {
        reason: format!("it does not answer within {limit_s} s: {what}"),
        is_lasting: false,
    }
}

/// A layer that does not work.
struct Found {
    layer: &'static str,
    error: String,
    /// The screen as it is, where it is not what it has to be.
    wrong_size: Option<String>,
}

/// Looks at every layer once, and runs programs; nothing where all works.
async fn look(guest: &Guest, patience: Patience<'_>) -> Option<Found> {
    let health = guest.health().await;
    if let Some((layer, found)) = health.broken() {
        let wrong_size = match layer {
            "display" => wrong_size(guest).await,
            _ => None,
        };
        return Some(Found {
            layer,
            error: found.error.clone().unwrap_or_default(),
            wrong_size,
        });
    }
    // The first was the layers' own.
    for _ in 1..patience.probes {
        sleep(patience.poll).await;
        if let Err(error) = run_program(guest).await {
            return Some(Found {
                layer: "execute",
                error,
                wrong_size: None,
            });
        }
    }
    None
}

async fn run_program(guest: &Guest) -> Result<(), String> {
    let limit = guest.options().deadline;
    let echo = Command::program(["echo", "ready"]);
    match timeout(limit, guest.run(&echo)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(with_causes(&error)),
        Err(_) => Err(format!("echo took more than {} s", limit.as_secs_f64())),
    }
}

async fn wrong_size(guest: &Guest) -> Option<String> {
    let (is, wanted) = (guest.screen_size().await.ok()?, guest.options().screen);
    (is != wanted).then(|| {
        format!(
            "its screen has {}x{} pixels instead of {}x{}",
            is.width, is.height, wanted.width, wanted.height
        )
    })
}
