//! Commands on Evals.

use crate::tui::commands::{CommandRow, EVALS, evals, operator, row};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    operator(
        "evaluate",
        "[TASKS]",
        &["e"],
        "evaluate",
        "Ask for an evaluation: a form.",
        evals::evaluate,
    )
    .on(EVALS),
    operator(
        "cancel-evaluation",
        "[NUMBER]",
        &["X"],
        "cancel",
        "Give up the selected evaluation; its trials so far are kept.",
        evals::cancel,
    )
    .on(EVALS)
    .costly(evals::victim),
    operator(
        "resume-evaluation",
        "[NUMBER]",
        &["R"],
        "go on",
        "Go on with the selected evaluation that was cancelled.",
        evals::resume,
    )
    .on(EVALS),
    row(
        "mark-evaluation",
        &["space"],
        EVALS,
        "mark",
        "Mark the evaluation: two marked ones are compared.",
        evals::mark,
    ),
    row(
        "flips",
        &["f", "enter"],
        EVALS,
        "flips",
        "Show what two evaluations solved differently, or the scores.",
        evals::flips,
    ),
    row(
        "flip-protocol",
        &["t"],
        EVALS,
        "protocol",
        "Count flips under the next protocol.",
        evals::protocol,
    ),
];
