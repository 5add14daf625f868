//! A run without the console: progress bars, or without a terminal one line an iteration.
//!
//! Everything goes to stderr; stdout is for `--json`'s one line.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::event::{
    EvalReport, Event, EventKind, IterationReport, NoticeLevel, Phase, RunState, RunSummary,
};
use crate::tui::machines;
use crate::types::{MachinePhase, MachineStatus};

/// Shows the events of one run as they come.
pub struct Headless {
    iterations: ProgressBar,
    phase: ProgressBar,
    bars: Option<indicatif::MultiProgress>,
    total: u64,
    machines: MachineLines,
}

impl Headless {
    /// Bars where stderr is a terminal, lines elsewhere.
    pub fn new() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self {
                iterations: ProgressBar::hidden(),
                phase: ProgressBar::hidden(),
                bars: None,
                total: 0,
                machines: MachineLines::default(),
            };
        }
        let bars = indicatif::MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let iterations = bars.add(ProgressBar::new(0).with_style(style(
            "{prefix:>9} {wide_bar:.cyan/dim} {pos}/{len} {elapsed_precise} eta {eta}",
        )));
        iterations.set_prefix("train");
        let phase = bars.add(
            ProgressBar::new(0)
                .with_style(style("{prefix:>9} {wide_bar:.blue/dim} {pos}/{len} {msg}")),
        );
        Self {
            iterations,
            phase,
            bars: Some(bars),
            total: 0,
            machines: MachineLines::default(),
        }
    }

    /// Names the run by the state it is watched from: its first event was written before.
    pub fn show_start(&mut self, state: &RunState) {
        let Some(header) = &state.header else { return };
        self.total = header.iterations;
        self.iterations.set_length(header.iterations);
        let mut parts = vec![format!("run {}:", header.run)];
        if header.iterations > 0 {
            parts.push(format!("{} iterations,", header.iterations));
        }
        parts.push(format!("{} tasks, seed {}", header.num_tasks, header.seed));
        self.line(&parts.join(" "));
        if state.incarnation > 0 {
            let done = state.history.len() as u64;
            self.iterations.set_position(done);
            self.line(&format!("resumed before iteration {}", done + 1));
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &Event) {
        match &event.kind {
            EventKind::PhaseStarted { phase, total, .. } => {
                self.phase.set_prefix(phase_name(*phase));
                self.phase.set_length(u64::from(*total));
                self.phase.set_position(0);
            }
            EventKind::PhaseProgress { done, .. } => self.phase.set_position(u64::from(*done)),
            EventKind::IterationFinished(report) => self.iteration(report),
            EventKind::EvalFinished(report) => self.line(&evaluation_line(report)),
            EventKind::Notice { level, text } if *level != NoticeLevel::Info => self.line(text),
            EventKind::MachineChanged { desktop, status } => {
                if let Some(line) = self.machines.line(*desktop, status) {
                    self.line(&line);
                }
            }
            EventKind::RunFinished(summary) => self.finish(summary),
            _ => {}
        }
    }

    fn iteration(&mut self, report: &IterationReport) {
        self.iterations.set_position(report.iteration.0 + 1);
        self.line(&iteration_line(report, self.total));
    }

    fn finish(&mut self, summary: &RunSummary) {
        self.phase.finish_and_clear();
        self.iterations.finish_and_clear();
        for line in summary_lines(summary) {
            self.line(&line);
        }
    }

    fn line(&self, text: &str) {
        match &self.bars {
            // Fails only if stderr is gone, and then nobody reads it.
            Some(bars) => drop(bars.println(text)),
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }
}

impl Default for Headless {
    fn default() -> Self {
        Self::new()
    }
}

/// Which changes of machines are worth a line: what one waits for, and what went wrong.
#[derive(Default)]
pub(super) struct MachineLines {
    /// The newest phase of each desktop's machine, and whether its first boot was told.
    known: BTreeMap<u32, (MachinePhase, bool)>,
}

impl MachineLines {
    /// The line for a change; none for what happens again and again while all is well.
    pub(super) fn line(&mut self, desktop: u32, status: &MachineStatus) -> Option<String> {
        let known = self.known.entry(desktop).or_default();
        let is_new = known.0 != status.phase;
        known.0 = status.phase;
        let is_told = match status.phase {
            MachinePhase::Booting => !std::mem::replace(&mut known.1, true),
            MachinePhase::Preparing | MachinePhase::Quarantined | MachinePhase::Suspect => is_new,
            // It ended by itself, or could not start.
            MachinePhase::Off => is_new && !status.detail.is_empty(),
            MachinePhase::Queued
            | MachinePhase::Starting
            | MachinePhase::Restoring
            | MachinePhase::Checking
            | MachinePhase::Ready
            | MachinePhase::Frozen
            | MachinePhase::Stopping => false,
        };
        is_told.then(|| machines::change(desktop, status))
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Evaluate => "evaluate",
        Phase::Collect => "collect",
        Phase::Replay => "replay",
        Phase::OldLogprobs => "old",
        Phase::Update => "update",
        Phase::Publish => "publish",
        Phase::Checkpoint => "save",
    }
}

fn iteration_line(report: &IterationReport, total: u64) -> String {
    format!(
        "iteration {:>3}/{total}  reward {:.3}  group std {:.3}  dead {}+{}/{}  replaced {}  \
         clip {:.2} %  entropy {:.3}  gap {:.1e}  grad {:.2}  errors {}  {:.1} s",
        report.iteration.0 + 1,
        report.reward_mean.0,
        report.group_std.0,
        report.groups_all_fail,
        report.groups_all_pass,
        report.groups,
        report.replaced,
        report.clip_fraction.0 * 100.0,
        report.entropy.0,
        report.logprob_gap.0,
        report.grad_norm.0,
        report.env_errors,
        report.wall_ms as f64 / 1000.0,
    )
}

fn evaluation_line(report: &EvalReport) -> String {
    let all = report.plain.all;
    let (low, high) = all.success_bounds;
    let missing = match report.errors {
        0 => String::new(),
        errors => format!(", {errors} more without score (with them {low:.3} to {high:.3})"),
    };
    format!(
        "{}: success {:.3} [{:.3}, {:.3}] over {} episodes{missing}, temperature {}, {:.1} s",
        report.name,
        all.success,
        all.interval.0,
        all.interval.1,
        all.n,
        report.temperature.0,
        report.wall_ms as f64 / 1000.0,
    )
}

/// The closing summary.
pub fn summary_lines(summary: &RunSummary) -> Vec<String> {
    let mut parts = vec![format!("{} after", summary.status)];
    if summary.iterations > 0 {
        parts.push(format!("{} iterations,", summary.iterations));
    }
    parts.push(format!(
        "{} episodes ({} errors), {:.1} s",
        summary.episodes, summary.env_errors, summary.wall_s.0
    ));
    let mut lines = vec![parts.join(" ")];
    if let Some(error) = &summary.error {
        lines.push(format!("error: {error}"));
    }
    // An evaluation or selection has no iterations to tell of.
    if summary.iterations == 0 {
        return lines;
    }
    lines.push(format!(
        "reward {:.3} -> {:.3}   group std {:.3} -> {:.3}   replaced {}   groups without signal {}",
        summary.reward_first.0,
        summary.reward_last.0,
        summary.group_std_first.0,
        summary.group_std_last.0,
        summary.replaced,
        summary.zero_variance_groups,
    ));
    if let (Some(first), Some(last)) = (summary.heldout_first, summary.heldout_last) {
        lines.push(format!("held-out success {first:.3} -> {last:.3}"));
    }
    lines.push(format!(
        "policy version {}, weights {}",
        summary.policy_version.0, summary.weights
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::MachineLines;
    use crate::types::{MachinePhase, MachineStatus};

    #[test]
    fn machines_are_told_of_where_one_waits_for_them_or_something_is_wrong() {
        use MachinePhase::{Booting, Off, Preparing, Quarantined, Ready, Restoring, Suspect};
        let mut lines = MachineLines::default();
        for (desktop, phase, limit_s, detail, line) in [
            (
                0,
                Preparing,
                600,
                "snapshot",
                "desktop 0: preparing · snapshot, at most 10:00",
            ),
            // One that gets on is told once.
            (0, Preparing, 600, "memory", ""),
            (0, Booting, 120, "", "desktop 0: booting, at most 120s"),
            (1, Booting, 120, "", "desktop 1: booting, at most 120s"),
            (0, Booting, 120, "kernel", ""),
            (0, Ready, 0, "", ""),
            (0, Restoring, 60, "", ""),
            (0, Booting, 120, "again", ""),
            (
                0,
                Suspect,
                30,
                "http\nis \x1b[2Jsilent",
                "desktop 0: suspect · http is [2Jsilent, at most 30s",
            ),
            (0, Ready, 0, "", ""),
            (0, Suspect, 30, "", "desktop 0: suspect, at most 30s"),
            (
                0,
                Quarantined,
                1800,
                "disk full",
                "desktop 0: quarantined · disk full, at most 30:00",
            ),
            (1, Off, 0, "", ""),
            (2, Off, 0, "QEMU ended", ""),
            (2, Booting, 0, "", "desktop 2: booting"),
            (2, Off, 0, "QEMU ended", "desktop 2: ended · QEMU ended"),
        ] {
            let status = MachineStatus {
                phase,
                limit_ms: (limit_s > 0).then_some(limit_s * 1000),
                detail: detail.to_owned(),
                ..MachineStatus::default()
            };
            let told = lines.line(desktop, &status).unwrap_or_default();
            assert_eq!(told, line);
        }
    }
}
