//! Commands on every screen: text, the time line, the console itself.

use crate::tui::commands::{
    CommandRow, GLOBAL, complete, lease, logs, machine, row, text, timeline, view,
};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    row(
        "palette",
        &[":"],
        GLOBAL,
        "command",
        "Type a command.",
        view::palette,
    ),
    row(
        "vm-log",
        &["M"],
        GLOBAL,
        "vm log",
        "Show the log of the desktop's machine.",
        machine::log,
    )
    .takes("[DESKTOP]")
    .machines(),
    row(
        "profile",
        &["g p"],
        GLOBAL,
        "",
        "Show what was changed of the run's profile and all of it, or how another run's differs.",
        logs::profile,
    )
    .takes("[diff RUN]"),
    row("theme", &[], GLOBAL, "", "Use another theme.", view::theme)
        .takes("THEME")
        .completes(complete::themes),
    row(
        "copy-id",
        &["y i", "y y"],
        GLOBAL,
        "",
        "Copy the episode's id.",
        text::copy_id,
    ),
    row(
        "copy-thought",
        &["y t"],
        GLOBAL,
        "",
        "Copy the thought of the step.",
        text::copy_thought,
    ),
    row(
        "copy-action",
        &["y a"],
        GLOBAL,
        "",
        "Copy the action of the step.",
        text::copy_action,
    ),
    row(
        "copy-ctl",
        &["y c"],
        GLOBAL,
        "",
        "Copy the newest command as its arpo ctl line.",
        text::copy_ctl,
    ),
    row(
        "copy-view",
        &["y v"],
        GLOBAL,
        "",
        "Copy what the screen shows, as text.",
        text::copy_view,
    ),
    row(
        "export",
        &["x"],
        GLOBAL,
        "",
        "Write what the screen shows into a file.",
        text::export,
    )
    .takes("[PATH]"),
    row(
        "pager",
        &["V"],
        GLOBAL,
        "",
        "Show what the screen shows in $PAGER, in full.",
        text::pager,
    ),
    row(
        "editor",
        &[],
        GLOBAL,
        "",
        "Open what the screen shows in $EDITOR.",
        text::editor,
    ),
    row(
        "iteration-back",
        &["["],
        GLOBAL,
        "",
        "Go to the iteration before.",
        timeline::iteration_back,
    )
    .recorded(),
    row(
        "iteration-on",
        &["]"],
        GLOBAL,
        "iteration",
        "Go to the next iteration.",
        timeline::iteration_on,
    )
    .recorded(),
    row(
        "time-back",
        &["{"],
        GLOBAL,
        "",
        "Go back a hundredth of the run's time.",
        timeline::time_back,
    )
    .recorded(),
    row(
        "time-on",
        &["}"],
        GLOBAL,
        "",
        "Go on a hundredth of the run's time.",
        timeline::time_on,
    )
    .recorded(),
    row(
        "seek",
        &[],
        GLOBAL,
        "",
        "Go to an iteration, a time or a part: 12, +3, 1:30, 40%, end.",
        timeline::seek,
    )
    .takes("PLACE")
    .recorded(),
    row(
        "play",
        &["ctrl-p"],
        GLOBAL,
        "play",
        "Play the run, so many times as fast as it went, or stand still.",
        timeline::play,
    )
    .takes("[TIMES]")
    .recorded(),
    row(
        "take",
        &[],
        GLOBAL,
        "",
        "Ask the console that writes to let this one write.",
        lease::take,
    ),
    row(
        "give",
        &[],
        GLOBAL,
        "",
        "Write no more on this run; another console may.",
        lease::release,
    ),
    row(
        "ascii",
        &[],
        GLOBAL,
        "",
        "Draw frames, charts and marks in ASCII, or stop doing so.",
        view::ascii,
    ),
    row(
        "images",
        &[],
        GLOBAL,
        "",
        "Show pictures so from now on.",
        view::images,
    )
    .takes("auto|kitty|sixel|cells|half|off"),
    row(
        "picture-rate",
        &[],
        GLOBAL,
        "",
        "Let pictures take at most this many kilobytes a second.",
        view::picture_rate,
    )
    .takes("KILOBYTES"),
    row(
        "about",
        &[],
        GLOBAL,
        "",
        "Show what the terminal can do, what it answered, how the line to it is.",
        view::about,
    ),
    row(
        "mouse",
        &[],
        GLOBAL,
        "",
        "Listen to the mouse, or stop doing so.",
        view::mouse,
    ),
    row(
        "redraw",
        &["ctrl-l"],
        GLOBAL,
        "",
        "Draw everything anew and try failed pictures again.",
        view::redraw,
    ),
    row(
        "suspend",
        &["ctrl-z"],
        GLOBAL,
        "",
        "Go back to the shell; fg returns.",
        view::suspend,
    ),
    row(
        "help",
        &["?", "f1"],
        GLOBAL,
        "help",
        "Show keys, commands and codes.",
        view::help,
    ),
    row(
        "keys",
        &[],
        GLOBAL,
        "",
        "Show what every key means, and conflicts of your own keys.",
        view::keys,
    ),
    row(
        "detach",
        &["Q"],
        GLOBAL,
        "",
        "Leave at once; the run goes on.",
        view::detach,
    ),
    row(
        "quit",
        &["q", "ctrl-c"],
        GLOBAL,
        "quit",
        "Leave the console; a run at work goes on, or stops if you say so.",
        view::quit,
    ),
];
