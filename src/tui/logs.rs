//! Rows of the Logs screen: notices, failures, commands and phases in one order of time. Pure.

use crate::event::{CommandState, CommandStatus, NoticeLevel, Phase, RunState};
use crate::tui::app::{App, LogSource};
use crate::tui::{figures, wording};
use crate::types::EpisodeId;

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRow {
    /// `at_ms` of its newest occurrence.
    pub at_ms: u64,
    /// How grave.
    pub level: NoticeLevel,
    /// Where it comes from.
    pub source: LogSource,
    /// One sentence.
    pub text: String,
    /// How often it happened.
    pub count: u64,
    /// When it happened first.
    pub first_ms: u64,
    /// The episode it is about.
    pub episode: Option<EpisodeId>,
}

/// A source as the screen names it.
pub fn source_name(source: LogSource) -> &'static str {
    match source {
        LogSource::All => "all",
        LogSource::Notices => "notice",
        LogSource::Journal => "journal",
        LogSource::Failures => "failure",
        LogSource::Trainer => "trainer",
    }
}

/// Rows that source and filter let through, oldest first.
pub fn log_rows(app: &App) -> Vec<LogRow> {
    let logs = &app.ui.logs;
    let mut rows = all_rows(&app.run);
    rows.retain(|row| logs.source == LogSource::All || row.source == logs.source);
    rows.retain(|row| is_let_through(row, &logs.filter));
    rows
}

fn all_rows(run: &RunState) -> Vec<LogRow> {
    let mut rows: Vec<LogRow> = run
        .notices
        .iter()
        .map(|notice| LogRow {
            at_ms: notice.last_ms,
            level: notice.level,
            source: match notice.class {
                Some(_) => LogSource::Failures,
                None => LogSource::Notices,
            },
            text: match notice.class {
                Some(class) => format!("{}: {}", wording::error_class(class), notice.text),
                None => notice.text.clone(),
            },
            count: notice.count,
            first_ms: notice.first_ms,
            episode: notice.episode,
        })
        .collect();
    let name = run
        .header
        .as_ref()
        .map_or("RUN", |header| header.run.as_str());
    rows.extend(
        run.commands
            .iter()
            .map(|command| command_row(command, name)),
    );
    rows.extend(run.finished_phases.iter().filter_map(|finished| {
        let text = phase_text(run, finished.phase, finished.iteration.0, finished.wall_ms)?;
        Some(plain_row(finished.ended_ms, text))
    }));
    rows.extend(run.checkpoint.iter().map(|checkpoint| {
        let done = checkpoint.iterations_done;
        plain_row(
            checkpoint.at_ms,
            format!("checkpoint {} after {done} iterations", checkpoint.path),
        )
    }));
    rows.sort_by_key(|row| row.at_ms);
    rows
}

fn plain_row(at_ms: u64, text: String) -> LogRow {
    LogRow {
        at_ms,
        level: NoticeLevel::Info,
        source: LogSource::Trainer,
        text,
        count: 1,
        first_ms: at_ms,
        episode: None,
    }
}

fn command_row(command: &CommandState, run: &str) -> LogRow {
    let (level, answer) = match &command.status {
        CommandStatus::Received => (NoticeLevel::Info, "received".to_owned()),
        CommandStatus::Accepted => (NoticeLevel::Info, "accepted".to_owned()),
        CommandStatus::Refused { reason } => (NoticeLevel::Warning, format!("refused: {reason}")),
        CommandStatus::Done => (NoticeLevel::Info, "done".to_owned()),
    };
    let took = command.answered_ms.map_or(String::new(), |answered_ms| {
        format!(
            " after {}",
            figures::duration(answered_ms.saturating_sub(command.at_ms))
        )
    });
    LogRow {
        at_ms: command.at_ms,
        level,
        source: LogSource::Journal,
        text: format!(
            "#{} {} by {}: {answer}{took}  $ {}",
            command.id,
            wording::command(&command.request),
            command.origin,
            wording::ctl_line(run, &command.request)
        ),
        count: 1,
        first_ms: command.at_ms,
        episode: None,
    }
}

/// What a phase that ended is worth saying. Collecting stands for its iteration's figures.
fn phase_text(run: &RunState, phase: Phase, iteration: u64, wall_ms: u64) -> Option<String> {
    let took = figures::duration(wall_ms);
    // Counted from 1, as in the header.
    let number = iteration + 1;
    match phase {
        Phase::Collect => {
            let report = run
                .history
                .iter()
                .rev()
                .find(|report| report.iteration.0 == iteration);
            let figures = report.map_or(String::new(), |report| {
                format!(
                    ", reward {}, group std {}, {} of {} groups dead, {} replaced",
                    figures::fraction(report.reward_mean.0),
                    figures::fraction(report.group_std.0),
                    report.groups_zero_variance,
                    report.groups,
                    report.replaced,
                )
            });
            Some(format!("iteration {number}: collected in {took}{figures}"))
        }
        Phase::Evaluate => Some(format!("evaluation took {took}")),
        Phase::Update => Some(format!("iteration {number}: updated in {took}")),
        Phase::Replay | Phase::OldLogprobs | Phase::Publish | Phase::Checkpoint => None,
    }
}

fn is_let_through(row: &LogRow, filter: &str) -> bool {
    let (wanted, inverted) = match filter.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (filter, false),
    };
    let text = row.text.to_lowercase();
    let contains = text.contains(&wanted.to_lowercase()) || source_name(row.source) == wanted;
    wanted.is_empty() || contains != inverted
}
