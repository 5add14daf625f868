//! Commands on Fleet.

use crate::tui::commands::{CommandRow, FLEET, navigate, row, view};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    row(
        "open",
        &["enter"],
        FLEET,
        "open",
        "Open the selected episode in Rollout.",
        navigate::open,
    ),
    row(
        "layout",
        &["z"],
        FLEET,
        "cards",
        "Go on from matrix to cards, from cards to pictures alone, and back.",
        view::fleet_layout,
    ),
    row(
        "sort",
        &["o"],
        FLEET,
        "sort",
        "Order rows by attention or by number.",
        view::fleet_sort,
    ),
    row(
        "desktops-view",
        &["b"],
        FLEET,
        "",
        "Show desktops instead of groups.",
        view::fleet_desktops,
    ),
];
