//! Commands on Replay.

use crate::tui::commands::{CommandRow, REPLAY, operator, replay, row};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    row(
        "open-stored",
        &["enter"],
        REPLAY,
        "open",
        "Open the stored success in Rollout.",
        replay::open,
    ),
    row(
        "next-stored",
        &["tab"],
        REPLAY,
        "entry",
        "Show the task's next older success.",
        replay::next_entry,
    ),
    row(
        "previous-stored",
        &["backtab"],
        REPLAY,
        "",
        "Show the task's next newer success.",
        replay::previous_entry,
    ),
    operator(
        "pin",
        "",
        &["L"],
        "pin",
        "Keep the success whatever newer ones come, or let it go again.",
        replay::pin,
    )
    .on(REPLAY),
    operator(
        "drop",
        "",
        &["D"],
        "drop",
        "Remove the success from the replay buffer.",
        replay::drop_stored,
    )
    .on(REPLAY)
    .costly(replay::stored_victim),
    row(
        "replay-sort",
        &["o"],
        REPLAY,
        "sort",
        "Order tasks by last injection, age, name or uses.",
        replay::sort,
    ),
    row(
        "replay-never",
        &["E"],
        REPLAY,
        "never solved",
        "Show only tasks that have never succeeded, or all.",
        replay::only_never,
    ),
];
