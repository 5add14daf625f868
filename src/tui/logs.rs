//! Rows of the Logs screen: notices, failures, commands and phases in one order of time. Pure.

use regex::{Regex, RegexBuilder};

use crate::event::{
    Command, CommandState, CommandStatus, MarkKind, NoticeLevel, Phase, RunState, TrainerState,
};
use crate::tui::app::{App, LogSource};
use crate::tui::{figures, wording};
use crate::types::EpisodeId;

/// Memory of a filter at most.
const REGEX_BYTES: usize = 1 << 20;

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
    /// The command it is about.
    pub command: Option<Command>,
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

/// How grave rows must be at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// All.
    #[default]
    Info,
    /// Warnings and errors.
    Warning,
    /// Errors.
    Error,
}

impl LogLevel {
    /// That of a row.
    pub fn of(level: NoticeLevel) -> Self {
        match level {
            NoticeLevel::Info => LogLevel::Info,
            NoticeLevel::Warning => LogLevel::Warning,
            NoticeLevel::Error => LogLevel::Error,
        }
    }

    /// As the screen names it.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Info => "info",
            LogLevel::Warning => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// A regular expression that rows must match, or must not.
#[derive(Clone, Debug)]
pub struct LogFilter {
    /// As it was typed.
    pub text: String,
    regex: Regex,
    is_inverted: bool,
}

impl LogFilter {
    /// Reads a filter; a leading `!` inverts, and capitals count only where there are any.
    /// Nothing typed is no filter.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let (pattern, is_inverted) = match text.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if pattern.is_empty() {
            return Ok(None);
        }
        let is_lower = !pattern.chars().any(char::is_uppercase);
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(is_lower)
            .size_limit(REGEX_BYTES)
            .build()
            .map_err(|error| {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim();
                format!("{pattern} is no regular expression: {last}")
            })?;
        Ok(Some(Self {
            text: text.to_owned(),
            regex,
            is_inverted,
        }))
    }

    /// Whether a row is among those meant: by its level, its source or its text.
    pub fn lets_through(&self, row: &LogRow) -> bool {
        let level = LogLevel::of(row.level).name();
        let line = format!("{level} {} {}", source_name(row.source), row.text);
        self.regex.is_match(&line) != self.is_inverted
    }
}

/// Rows that source, level and filter let through, oldest first.
pub fn log_rows(app: &App) -> Vec<LogRow> {
    let logs = &app.ui.logs;
    let mut rows = all_rows(&app.run);
    rows.retain(|row| {
        let is_grave = LogLevel::of(row.level) >= logs.least;
        let is_wanted = logs.source == LogSource::All || row.source == logs.source;
        let filter = logs.filter.as_ref();
        is_grave && is_wanted && filter.is_none_or(|filter| filter.lets_through(row))
    });
    rows
}

/// How far up the next row is that the search means, from `up` on: older ones with `older`.
pub fn found_row(app: &App, rows: &[LogRow], older: bool) -> Option<usize> {
    let last = rows.len().checked_sub(1)?;
    let at = last - app.ui.logs.up.min(last);
    let is_meant = |row: &LogRow| match &app.ui.logs.search {
        Some(search) => search.lets_through(row),
        None => row.level != NoticeLevel::Info,
    };
    let found = if older {
        rows[..at].iter().rposition(is_meant)
    } else {
        rows[at + 1..]
            .iter()
            .position(is_meant)
            .map(|place| at + 1 + place)
    };
    found.map(|place| last - place)
}

/// How far up the first cause of the newest pause is: the operator's request, or else the first
/// error since the run last went on, or else the first warning.
pub fn first_cause(run: &RunState, rows: &[LogRow]) -> Option<usize> {
    let pauses = || {
        run.marks
            .iter()
            .rev()
            .filter(|mark| mark.kind == MarkKind::Pause)
    };
    let paused_ms = match run.trainer {
        TrainerState::Pausing(_) | TrainerState::Paused(_) | TrainerState::Failed => {
            run.trainer_since_ms
        }
        _ => pauses().next()?.at_ms,
    };
    let before = pauses().find(|mark| mark.at_ms < paused_ms);
    let since_ms = before.map_or(0, |mark| mark.at_ms + 1);
    let within = |row: &LogRow| (since_ms..=paused_ms).contains(&row.first_ms);
    let of_level = |level| {
        rows.iter()
            .position(|row| within(row) && row.level == level && row.source != LogSource::Journal)
    };
    let asked = rows
        .iter()
        .rposition(|row| within(row) && row.source == LogSource::Journal && asks_to_pause(row));
    let found = asked
        .or_else(|| of_level(NoticeLevel::Error))
        .or_else(|| of_level(NoticeLevel::Warning));
    found.map(|place| rows.len() - 1 - place)
}

fn asks_to_pause(row: &LogRow) -> bool {
    row.command
        .as_ref()
        .is_some_and(|command| matches!(command, Command::Pause { .. } | Command::Stop))
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
            command: None,
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
    rows.extend(run.marks.iter().filter_map(|mark| {
        let number = mark.iteration.0 + 1;
        let text = match &mark.kind {
            MarkKind::Pause => format!("iteration {number}: paused"),
            MarkKind::Setting { key, value } => format!("{key} is {} from now on", value.0),
            MarkKind::Evaluation { .. } => evaluation_text(run, mark.at_ms)?,
            // The newest one is told with its folder.
            MarkKind::Checkpoint => return None,
        };
        Some(plain_row(mark.at_ms, text))
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

/// The scores of the evaluation that ended then.
fn evaluation_text(run: &RunState, at_ms: u64) -> Option<String> {
    let mut evaluations = run.evaluations.iter();
    let ended = evaluations.find(|one| one.since_ms == at_ms && one.report.is_some())?;
    let report = ended.report.as_ref()?;
    let number = ended
        .number
        .map_or(String::new(), |number| format!(" #{number}"));
    let name = &report.name;
    let all = report.plain.all;
    Some(format!(
        "evaluation{number} {name}: plain success {} [{}, {}] of {} episodes",
        figures::fraction(all.success),
        figures::fraction(all.interval.0),
        figures::fraction(all.interval.1),
        all.n
    ))
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
        command: None,
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
        command: Some(command.request.clone()),
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

#[cfg(test)]
mod tests {
    use super::{LogFilter, LogRow, first_cause, plain_row};
    use crate::event::{
        Command, MarkKind, NoticeLevel, RunMark, RunState, SafePoint, TrainerState,
    };
    use crate::tui::app::LogSource;
    use crate::types::Iteration;

    fn row(at_ms: u64, level: NoticeLevel, text: &str) -> LogRow {
        LogRow {
            level,
            source: LogSource::Notices,
            ..plain_row(at_ms, text.to_owned())
        }
    }

    #[test]
    fn filters_are_regular_expressions() {
        let row = row(0, NoticeLevel::Warning, "desktop 12 took 3 s");
        for (text, expected) in [
            ("desktop 1[0-3]", true),
            ("DESKTOP", false),
            ("took", true),
            ("!took", false),
            ("!vm-9", true),
            ("^warn notice", true),
        ] {
            let filter = LogFilter::parse(text).unwrap().unwrap();
            assert_eq!(filter.lets_through(&row), expected, "{text}");
        }
        assert!(LogFilter::parse("").unwrap().is_none());
        assert!(LogFilter::parse("!").unwrap().is_none());
        let error = LogFilter::parse("a(").unwrap_err();
        assert!(error.contains("a( is no regular expression"), "{error}");
    }

    #[test]
    fn a_pause_leads_to_who_asked_or_to_the_first_error() {
        let pause = |at_ms| RunMark {
            iteration: Iteration(0),
            at_ms,
            kind: MarkKind::Pause,
        };
        let mut run = RunState {
            trainer: TrainerState::Paused(SafePoint::Batch),
            trainer_since_ms: 900,
            marks: [pause(100), pause(900)].into(),
            ..RunState::default()
        };
        let mut rows = vec![
            row(50, NoticeLevel::Error, "of the pause before"),
            row(300, NoticeLevel::Warning, "slow"),
            row(400, NoticeLevel::Error, "first"),
            row(500, NoticeLevel::Error, "second"),
            row(950, NoticeLevel::Error, "after"),
        ];
        assert_eq!(first_cause(&run, &rows), Some(2));
        rows.remove(2);
        rows.remove(2);
        assert_eq!(first_cause(&run, &rows), Some(1));
        let asked = Command::Pause {
            at: SafePoint::Batch,
        };
        rows.insert(
            2,
            LogRow {
                source: LogSource::Journal,
                command: Some(asked),
                ..plain_row(800, "pause".to_owned())
            },
        );
        assert_eq!(first_cause(&run, &rows), Some(1));
        run.trainer = TrainerState::Running;
        run.marks.clear();
        assert_eq!(first_cause(&run, &rows), None);
    }
}
