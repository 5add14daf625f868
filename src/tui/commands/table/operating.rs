//! Commands on every screen: asking something of the engine.

use crate::tui::commands::{CommandRow, complete, debug, operate, operator, single};

/// In the order of the hint bar.
pub(super) const ROWS: &[CommandRow] = &[
    operator(
        "pause",
        "[env-step|batch|pre-update|post-checkpoint]",
        &["p"],
        "pause",
        "Pause the run at the next safe point.",
        operate::pause,
    )
    .completes(complete::safe_points)
    .ctl("pause --at POINT"),
    operator(
        "resume",
        "",
        &["r"],
        "resume",
        "Let the run go on.",
        operate::resume,
    ),
    operator(
        "step-phase",
        "",
        &["s"],
        "",
        "Go on until the next safe point, then pause.",
        operate::step_phase,
    ),
    operator(
        "step-iteration",
        "",
        &["S"],
        "",
        "Go on for one iteration, then pause.",
        operate::step_iteration,
    ),
    operator(
        "checkpoint",
        "",
        &["C"],
        "",
        "Write a checkpoint at the next safe point.",
        operate::checkpoint,
    ),
    operator(
        "hold",
        "[WHOM]",
        &["i"],
        "",
        "Hold the episode shown, EPISODE, desktop:N or all before each action; others: all stand still.",
        debug::hold,
    ),
    operator(
        "release",
        "[WHOM]",
        &["I"],
        "",
        "Hold an episode no more; a reply that waits is carried out.",
        debug::release,
    ),
    operator(
        "break",
        "[CONDITION]",
        &[],
        "",
        "Hold on a condition: step N, kind ACTION, parse-error, low-logprob X, unchanged; clear.",
        debug::breakpoint,
    ),
    operator(
        "lr",
        "RATE",
        &[],
        "",
        "Use this learning rate from the next update on.",
        operate::learning_rate,
    )
    .ctl("set-lr RATE"),
    operator(
        "temperature",
        "VALUE",
        &[],
        "",
        "Use this sampling temperature from the next rollout on.",
        operate::temperature,
    )
    .ctl("set-temperature VALUE"),
    operator(
        "desktops",
        "COUNT",
        &[],
        "",
        "Use this many desktops from the next iteration on.",
        operate::desktops,
    )
    .ctl("set-desktops COUNT"),
    operator(
        "kill",
        "[EPISODE]",
        &["K"],
        "",
        "End the episode; its group goes on without it.",
        single::kill,
    )
    .costly(single::episode_victim)
    .ctl("kill EPISODE"),
    operator(
        "reroll",
        "[EPISODE]",
        &[],
        "",
        "End the episode and try it again with another seed.",
        single::reroll,
    )
    .costly(single::episode_victim)
    .ctl("reroll EPISODE"),
    operator(
        "reboot",
        "[DESKTOP]",
        &["ctrl-b"],
        "",
        "Close the desktop and open it anew; its episode is tried again.",
        single::reboot,
    )
    .costly(single::desktop_victim)
    .ctl("reboot DESKTOP"),
    operator(
        "clip",
        "LOW HIGH",
        &[],
        "",
        "Clip ratios to 1 - LOW and 1 + HIGH from the next update on.",
        single::clip,
    )
    .ctl("set-clip LOW HIGH"),
    operator(
        "replay-buffer",
        "on|off",
        &[],
        "",
        "Draw from the replay buffer and store into it, or not, from the next iteration on.",
        single::replay_buffer,
    )
    .completes(complete::switches)
    .ctl("set-replay true|false"),
    operator(
        "stop",
        "",
        &[],
        "",
        "Stop the run after the running phase, with a checkpoint.",
        operate::stop,
    )
    .irreversible(operate::run_to_stop),
];
