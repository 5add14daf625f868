//! Commands on Train.

use crate::tui::commands::{CommandRow, TRAIN, row, train};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    row(
        "zoom",
        &["enter", "z"],
        TRAIN,
        "zoom",
        "Show the chart in focus alone, or all of them.",
        train::zoom,
    ),
    row(
        "next-chart",
        &["tab"],
        TRAIN,
        "chart",
        "Focus the next chart.",
        train::next_chart,
    ),
    row(
        "previous-chart",
        &["backtab"],
        TRAIN,
        "",
        "Focus the previous chart.",
        train::previous_chart,
    ),
    row(
        "wider",
        &["-"],
        TRAIN,
        "",
        "Show more iterations.",
        train::wider,
    ),
    row(
        "narrower",
        &["+", "="],
        TRAIN,
        "window",
        "Show fewer, newer iterations.",
        train::narrower,
    ),
    row(
        "log-axis",
        &["L"],
        TRAIN,
        "log axis",
        "Make the axes of all charts logarithmic, or linear.",
        train::log_axis,
    ),
    row(
        "csv",
        &["X"],
        TRAIN,
        "csv",
        "Write all iterations into a CSV file.",
        train::export,
    )
    .takes("[FILE]"),
    row(
        "compare",
        &[],
        TRAIN,
        "",
        "Draw another run's course too: its folder, or its name in runs.",
        train::compare,
    )
    .takes("[RUN]"),
];
