//! Commands on Logs.

use crate::tui::commands::{CommandRow, LOGS, logs, navigate, row};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    row(
        "filter",
        &["/"],
        LOGS,
        "filter",
        "Show only rows that match a regular expression; a leading ! inverts.",
        logs::filter,
    ),
    row(
        "source",
        &["o"],
        LOGS,
        "source",
        "Show only notices, journal, failures or trainer.",
        logs::source,
    ),
    row(
        "open-record",
        &["enter"],
        LOGS,
        "open",
        "Open the episode of the selected row in Rollout.",
        logs::open,
    ),
    row(
        "graver",
        &[">"],
        LOGS,
        "level",
        "Show only graver rows: warnings, then errors.",
        logs::graver,
    ),
    row(
        "milder",
        &["<"],
        LOGS,
        "",
        "Show less grave rows too.",
        logs::milder,
    ),
    row(
        "search",
        &["ctrl-f"],
        LOGS,
        "",
        "Look for a regular expression; n and N go on.",
        logs::search,
    )
    .takes("[REGEX]"),
    row(
        "next-match",
        &["n"],
        LOGS,
        "match",
        "Go to the next older row found; without a search, to a warning or an error.",
        logs::next_match,
    ),
    row(
        "previous-match",
        &["N"],
        LOGS,
        "",
        "Go to the next newer row found.",
        logs::previous_match,
    ),
    row(
        "cause",
        &["c"],
        LOGS,
        "cause",
        "Go to the first cause of the newest pause.",
        logs::cause,
    ),
    row(
        "follow-newest",
        &["f"],
        LOGS,
        "follow",
        "Go to the newest row and follow.",
        navigate::last,
    ),
];
