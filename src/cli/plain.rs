//! A run as lines: one an event, no cursor control. For screen readers, logs and pipes.

use std::fmt::Write as _;

use serde_json::Value;

use crate::bus::{Source, SourceItem};
use crate::cli::say;
use crate::event::{Event, EventKind, RunState};
use crate::tui::text::one_line;
use crate::tui::{figures, machines, wording};

/// Longest value shown of one field, characters: a thought in full, a list of advantages not.
const VALUE_MAX: usize = 600;

/// Prints how the run stands, and then each event until the run is over or the reader leaves.
pub(super) async fn follow(mut source: Source) {
    say(standing(&source.run, &source.state));
    while let Some(item) = source.items.recv().await {
        match item {
            SourceItem::Event(event) => say(line(&event)),
            SourceItem::Resync { state, missed } => {
                if missed > 0 {
                    say(format_args!("{missed} events were too fast to follow"));
                }
                say(standing(&source.run, &state));
            }
            SourceItem::Lost { reason } => say(format_args!("connection lost: {reason}")),
            SourceItem::Heard | SourceItem::Lease(_) | SourceItem::Timeline(_) => {}
        }
    }
}

/// One sentence on a run.
fn standing(name: &str, run: &RunState) -> String {
    let mut text = format!(
        "{} {name} {}",
        figures::time(run.at_ms),
        wording::trainer(run.trainer)
    );
    if let Some(iteration) = run.iteration {
        let _ = write!(text, " iteration {}", iteration.0 + 1);
    }
    if let Some(last) = run.history.last() {
        let reward = figures::fraction(last.reward_mean.0);
        let _ = write!(text, " reward {reward}");
    }
    text
}

/// An event in words: its time, its kind, its fields.
pub(super) fn line(event: &Event) -> String {
    let mut text = figures::time(event.at_ms);
    // How a machine stands is several values that say little one by one.
    if let EventKind::MachineChanged { desktop, status } = &event.kind {
        let change = machines::change(*desktop, status);
        let _ = write!(text, " machine changed {change}");
        return text;
    }
    // An event is an object with a type; what is not one has nothing to say.
    let value = serde_json::to_value(&event.kind).unwrap_or_default();
    if let Value::Object(fields) = value {
        for (name, value) in fields {
            if name == "type" {
                text.push(' ');
                text.push_str(&words(&value).replace('_', " "));
            } else {
                let _ = write!(text, " {name}={}", words(&value));
            }
        }
    }
    text
}

fn words(value: &Value) -> String {
    let text = match value {
        Value::String(text) if text.contains(' ') => format!("\"{}\"", one_line(text)),
        Value::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    };
    match text.char_indices().nth(VALUE_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
