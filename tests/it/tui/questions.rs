//! What operators ask, each answered by at most five keys, and a script for every command of the
//! table.

use std::collections::BTreeSet;

use arpo::bus::{LeaseRequest, LeaseState, PlayRequest, TimelineInfo};
use arpo::event::{Command, DebugCommand, Decision, EventKind, HoldReason, SafePoint};
use arpo::store::{IterationMark, Moment};
use arpo::tui::app::{App, Link, Overlay, RolloutPage, Screen};
use arpo::tui::commands::{COMMANDS, Danger, Scope, command_named};
use arpo::tui::debug::{held_here, looked_at};
use arpo::tui::evals::EvalsUi;
use arpo::tui::logs::LogLevel;
use arpo::tui::replay::ReplayUi;
use arpo::tui::theme::{ColorDepth, Role};
use arpo::tui::timeline::TimelineUi;
use arpo::tui::update::{Effect, Input, update};
use arpo::tui::work::Job;

use super::debugger::{candidate, held, propose};
use super::{app, draw_at, event, press, text_of};

const PROFILE: &str = "[sampling]\ntemperature = 1.0\n";

/// Presses at most five keys and returns what is shown then.
fn ask(keys: &str) -> String {
    assert!(keys.split_whitespace().count() <= 5, "{keys}");
    let mut app = app(ColorDepth::None);
    PROFILE.clone_into(&mut app.ui.profile);
    press(&mut app, keys);
    text_of(&draw_at(&mut app, 120, 40))
}

#[track_caller]
fn check_answer(keys: &str, answer: &[&str]) {
    let shown = ask(keys);
    for part in answer {
        assert!(
            shown.contains(part),
            "{keys:?} does not show {part:?}:\n{shown}"
        );
    }
}

#[test]
fn which_desktop_is_slowest() {
    check_answer("g s", &["has not moved for 4", "g00.s1"]);
}

#[test]
fn what_the_last_failed_episode_looked_like_at_its_end() {
    check_answer("g x", &["Screen at step", "g04.s0"]);
    // The one before.
    check_answer("g x g x", &["Screen at step", "outcome .00"]);
}

#[test]
fn what_a_step_typed() {
    check_answer("g x H", &["step 1/", "click 250,222"]);
}

#[test]
fn why_the_parser_refused() {
    check_answer("g m", &["did not parse: clik is not an action"]);
}

#[test]
fn which_group_differs_most() {
    check_answer("g d", &["▸ 00", ".55"]);
}

#[test]
fn whether_replay_was_used() {
    check_answer("g r", &["▸ 03", "~1.0", "replay"]);
}

#[test]
fn how_training_goes() {
    check_answer("3", &["reward", "dead"]);
}

#[test]
fn how_often_fail_was_right() {
    check_answer("4", &["FAIL r/w", "-.10     1/2"]);
}

#[test]
fn how_many_tokens_are_left() {
    check_answer("g x g x", &["tokens used", " left"]);
}

#[test]
fn how_ratios_are_spread() {
    check_answer("3", &["Ratios", "≥1.22"]);
}

#[test]
fn what_changed_in_the_profile() {
    check_answer(
        "g p",
        &["Changed while it runs", "sampling.temperature = 1.0 -> 0.9"],
    );
}

/// Keys, or a line typed into the palette, that run a command; and what must come of it.
struct Script {
    command: &'static str,
    keys: &'static str,
    check: fn(&App, &[Effect]) -> bool,
}

const fn script(
    command: &'static str,
    keys: &'static str,
    check: fn(&App, &[Effect]) -> bool,
) -> Script {
    Script {
        command,
        keys,
        check,
    }
}

fn sends(effects: &[Effect], wanted: &Command) -> bool {
    matches!(effects, [Effect::Send(_, command)] if command == wanted)
}

fn decides(effects: &[Effect], wanted: fn(&Decision) -> bool) -> bool {
    matches!(effects, [Effect::Send(_, Command::Debug(DebugCommand::Decide { decision, .. }))]
        if wanted(decision))
}

fn plays(effects: &[Effect], wanted: PlayRequest) -> bool {
    effects == [Effect::Play(wanted)]
}

fn copies(effects: &[Effect]) -> bool {
    matches!(effects, [Effect::Copy { text, .. }] if !text.is_empty())
}

const SCRIPTS: &[Script] = &[
    script("open", "enter", |app, _| app.ui.screen == Screen::Rollout),
    script("layout", "z", |app, _| {
        app.ui.fleet.layout == arpo::tui::fleet::FleetLayout::Cards
    }),
    script("sort", "o", |app, _| {
        app.ui.fleet.sort == arpo::tui::fleet::FleetSort::Number
    }),
    script("desktops-view", "b", |app, _| app.ui.fleet.by_desktop),
    script("first-step", "2 H", |app, _| app.ui.rollout.step == Some(0)),
    script("last-step", "' g 0 . s 0 enter H L", |app, _| {
        app.ui.rollout.step.is_some_and(|step| step > 0)
    }),
    script("follow", "2 H space", |app, _| {
        app.ui.rollout.step.is_none()
    }),
    script("next-sibling", "2 n", |app, _| app.ui.fleet.is_chosen),
    script("previous-sibling", "2 N", |app, _| app.ui.fleet.is_chosen),
    script("picture", "2 v", |app, _| app.ui.rollout.only_picture),
    script("next-pane", "2 tab", |app, _| {
        arpo::tui::focus::has_focused_detail(app)
    }),
    script("thought-down", "2 tab j j", |app, _| {
        app.ui.rollout.thought_scroll == 2
    }),
    script("thought-up", "2 tab j j k", |app, _| {
        app.ui.rollout.thought_scroll == 1
    }),
    script("after", "2 b", |app, _| app.ui.rollout.shows_after),
    script("changes", "2 d", |app, _| app.ui.rollout.outlines),
    script("thought", "2 t", |app, _| {
        app.ui.rollout.page == RolloutPage::Thought
    }),
    script("tokens", "2 T", |app, _| {
        app.ui.rollout.page == RolloutPage::Tokens
    }),
    script("siblings", "2 c", |app, _| {
        app.ui.rollout.page == RolloutPage::Siblings
    }),
    script("zoom", "3 enter", |app, _| app.ui.train.zoomed),
    script("next-chart", "3 tab", |app, _| app.ui.train.chart == 1),
    script("previous-chart", "3 tab tab backtab", |app, _| {
        app.ui.train.chart == 1
    }),
    script("log-axis", "3 L", |app, _| app.ui.train.is_log),
    script("csv", "3 X", |_, effects| {
        matches!(effects, [Effect::Work(Job::Write { .. })])
    }),
    script("compare", ": c o m p a r e space a enter", |_, effects| {
        matches!(effects, [Effect::Work(Job::Compare(_))])
    }),
    script("evaluate", "4 e enter", |_, effects| {
        matches!(effects, [Effect::Send(_, Command::Evaluate(_))])
    }),
    script(
        "cancel-evaluation",
        ": c a n c e l tab 3 enter y",
        |_, effects| sends(effects, &Command::CancelEvaluation { evaluation: 3 }),
    ),
    script(
        "resume-evaluation",
        ": r e s u m e - e tab 3 enter",
        |_, effects| {
            matches!(effects, [Effect::Send(_, Command::Evaluate(request))]
                if request.resume == Some(3))
        },
    ),
    script("mark-evaluation", "4 space", |app, _| {
        app.ui.evals.marked.len() == 1
    }),
    script("flips", "4 f", |app, _| app.ui.evals.shows_flips),
    script("flip-protocol", "4 t", |app, _| {
        app.ui.evals.protocol != EvalsUi::default().protocol
    }),
    script("open-stored", "5 enter", |app, _| {
        app.ui.screen == Screen::Rollout || app.ui.message.is_some()
    }),
    script("next-stored", "5 o o j tab", |app, _| {
        app.ui.replay.entry > 0
    }),
    script("previous-stored", "5 o o j tab backtab", |app, _| {
        app.ui.replay.entry == 0
    }),
    script("pin", "5 L", |_, effects| {
        matches!(
            effects,
            [Effect::Send(_, Command::PinStored { pinned: true, .. })]
        )
    }),
    script("drop", "5 D y", |_, effects| {
        matches!(effects, [Effect::Send(_, Command::DropStored { .. })])
    }),
    script("replay-sort", "5 o", |app, _| {
        app.ui.replay.sort != ReplayUi::default().sort
    }),
    script("replay-never", "5 E", |app, _| app.ui.replay.only_never),
    script("wider", "3 + -", |app, _| app.ui.train.window.is_none()),
    script("narrower", "3 +", |app, _| app.ui.train.window == Some(10)),
    script("filter", "6 / v m enter", |app, _| {
        app.ui
            .logs
            .filter
            .as_ref()
            .is_some_and(|filter| filter.text == "vm")
    }),
    script("source", "6 o", |app, _| {
        app.ui.logs.source == arpo::tui::app::LogSource::Notices
    }),
    script("open-record", "6 N enter", |app, _| {
        app.ui.screen == Screen::Rollout || app.ui.message.is_some()
    }),
    script("graver", "6 >", |app, _| {
        app.ui.logs.least == LogLevel::Warning
    }),
    script("milder", "6 > <", |app, _| {
        app.ui.logs.least == LogLevel::Info
    }),
    script("search", "6 ctrl-f v m enter", |app, _| {
        app.ui
            .logs
            .search
            .as_ref()
            .is_some_and(|search| search.text == "vm")
    }),
    script("next-match", "6 n", |app, _| app.ui.logs.up > 0),
    script("previous-match", "6 n n n N", |app, _| app.ui.logs.up > 0),
    script("cause", "6 c", |app, _| {
        app.ui.logs.up > 0 || app.ui.message.is_some()
    }),
    script("follow-newest", "6 k k f", |app, _| app.ui.logs.up == 0),
    script("up", "6 k", |app, _| app.ui.logs.up == 1),
    script("down", "6 k k j", |app, _| app.ui.logs.up == 1),
    script("left", "3 h", |app, _| app.ui.train.cursor.is_some()),
    script("right", "3 h h l", |app, _| app.ui.train.cursor.is_some()),
    script("page-up", "6 ctrl-u", |app, _| app.ui.logs.up == 10),
    script("page-down", "6 ctrl-u ctrl-d", |app, _| app.ui.logs.up == 0),
    script("first", "3 g g", |app, _| {
        app.ui.train.cursor.is_some_and(|at| at.0 == 0)
    }),
    script("last", "3 g g G", |app, _| app.ui.train.cursor.is_none()),
    script("slowest", "g s", |app, _| app.ui.rollout.pinned.is_some()),
    script("failure", "g x", |app, _| app.ui.rollout.step.is_some()),
    script("malformed", "g m", |app, _| app.ui.rollout.step.is_some()),
    script("widest", "g d", |app, _| app.ui.fleet.row == 0),
    script("replayed", "g r", |app, _| app.ui.fleet.row == 3),
    script("fleet", "3 1", |app, _| app.ui.screen == Screen::Fleet),
    script("rollout", "2", |app, _| app.ui.screen == Screen::Rollout),
    script("train", "3", |app, _| app.ui.screen == Screen::Train),
    script("evals", "4", |app, _| app.ui.screen == Screen::Evals),
    script("replay", "5", |app, _| app.ui.screen == Screen::Replay),
    script("logs", "6", |app, _| app.ui.screen == Screen::Logs),
    script("back", "3 esc", |app, _| app.ui.screen == Screen::Fleet),
    script("previous-screen", "3 4 backspace", |app, _| {
        app.ui.screen == Screen::Train
    }),
    script("screen", ": s c r e e n space l o g s enter", |app, _| {
        app.ui.screen == Screen::Logs
    }),
    script("goto", "' g 0 2 enter", |app, _| app.ui.fleet.row == 2),
    script("pause", "p", |_, effects| {
        let at = SafePoint::EnvStep;
        sends(effects, &Command::Pause { at })
    }),
    script("resume", "r", |_, effects| sends(effects, &Command::Resume)),
    script("step-phase", "s", |_, effects| {
        sends(effects, &Command::StepPhase)
    }),
    script("step-iteration", "S", |_, effects| {
        sends(effects, &Command::StepIteration)
    }),
    script("checkpoint", "C", |_, effects| {
        sends(effects, &Command::Checkpoint)
    }),
    script("lr", ": l r space 1 e - 4 enter", |_, effects| {
        sends(effects, &Command::SetLearningRate { value: 1e-4 })
    }),
    script("temperature", ": t e m p tab 2 enter", |_, effects| {
        sends(effects, &Command::SetTemperature { value: 2.0 })
    }),
    script(
        "desktops",
        ": d e s k t o p s space 4 enter",
        |_, effects| sends(effects, &Command::SetDesktops { value: 4 }),
    ),
    script("accept", "enter", |_, effects| {
        decides(effects, |decision| *decision == Decision::Accept)
    }),
    script("edit", "e x ctrl-s", |_, effects| {
        decides(effects, |decision| {
            matches!(decision, Decision::Edit { .. })
        })
    }),
    script("write", "w x ctrl-s", |_, effects| {
        decides(effects, |decision| {
            matches!(decision, Decision::Write { .. })
        })
    }),
    script("regenerate", "R", |_, effects| {
        decides(effects, |decision| {
            *decision == Decision::Regenerate { count: 3 }
        })
    }),
    script("next-candidate", "tab", |app, effects| {
        let (id, held) = held_here(app).unwrap();
        effects.is_empty() && looked_at(app, id, held) == 1
    }),
    script("choose", ": c h o o s e space 2 enter", |_, effects| {
        decides(effects, |decision| {
            *decision == Decision::Choose { candidate: 2 }
        })
    }),
    script("skip", "x", |_, effects| {
        decides(effects, |decision| *decision == Decision::Skip)
    }),
    script("continue", "c", |_, effects| {
        decides(effects, |decision| *decision == Decision::Continue)
    }),
    script("abort", "A", |_, effects| {
        decides(effects, |decision| *decision == Decision::Abort)
    }),
    script("branch", "' g 0 2 . s 0 enter H l B", |_, effects| {
        matches!(
            effects,
            [Effect::Send(_, Command::Debug(DebugCommand::Branch { .. }))]
        )
    }),
    script("hold", "' g 0 4 . s 2 enter i", |_, effects| {
        matches!(
            effects,
            [Effect::Send(_, Command::Debug(DebugCommand::Hold { .. }))]
        )
    }),
    script("release", "' g 0 4 . s 2 enter I", |_, effects| {
        matches!(
            effects,
            [Effect::Send(
                _,
                Command::Debug(DebugCommand::Release { .. })
            )]
        )
    }),
    script(
        "break",
        ": b r e a k space s t e p space 3 enter",
        |_, effects| {
            matches!(
                effects,
                [Effect::Send(
                    _,
                    Command::Debug(DebugCommand::SetBreakpoint { .. })
                )]
            )
        },
    ),
    script("kill", "' g 0 4 . s 2 enter K y", |_, effects| {
        matches!(effects, [Effect::Send(_, Command::KillEpisode { .. })])
    }),
    script(
        "reroll",
        "' g 0 4 . s 2 enter : r e r o l l enter y",
        |_, effects| matches!(effects, [Effect::Send(_, Command::RerollEpisode { .. })]),
    ),
    script("reboot", ": r e b o o t space 3 enter y", |_, effects| {
        sends(effects, &Command::RebootDesktop { desktop: 3 })
    }),
    script(
        "clip",
        ": c l i p space . 2 space . 3 enter",
        |_, effects| {
            let (low, high) = (0.2, 0.3);
            sends(effects, &Command::SetClip { low, high })
        },
    ),
    script(
        "replay-buffer",
        ": r e p l a y - b tab o f f enter",
        |_, effects| sends(effects, &Command::SetReplay { enabled: false }),
    ),
    script(
        "stop",
        ": s t o p enter d e m o - 1 1 2 9 - 1 6 3 1 enter",
        |_, effects| sends(effects, &Command::Stop),
    ),
    script("copy-id", "y i", |_, effects| copies(effects)),
    script("copy-thought", "' g 2 . s 0 enter H y t", |_, effects| {
        copies(effects)
    }),
    script("copy-action", "' g 2 . s 0 enter H y a", |_, effects| {
        copies(effects)
    }),
    script("copy-ctl", "y c", |_, effects| copies(effects)),
    script("copy-view", "y v", |_, effects| copies(effects)),
    script("export", "x", |_, effects| {
        matches!(effects, [Effect::Export { path: None, .. }])
    }),
    script("pager", "V", |_, effects| {
        matches!(effects, [Effect::Read { .. }])
    }),
    script("editor", ": e d i t o r enter", |_, effects| {
        matches!(effects, [Effect::Read { .. }])
    }),
    script("iteration-back", "[", |_, effects| {
        plays(effects, PlayRequest::Seek(Moment::Seq(21)))
    }),
    script("iteration-on", "]", |_, effects| {
        plays(effects, PlayRequest::Seek(Moment::Seq(9_000)))
    }),
    script("time-back", "{", |app, effects| {
        let at_ms = app.run.at_ms - 90;
        plays(effects, PlayRequest::Seek(Moment::Time(at_ms)))
    }),
    script("time-on", "}", |app, effects| {
        let at_ms = app.run.at_ms + 90;
        plays(effects, PlayRequest::Seek(Moment::Time(at_ms)))
    }),
    script("seek", ": s e e k space 2 enter", |_, effects| {
        plays(effects, PlayRequest::Seek(Moment::Seq(21)))
    }),
    script("play", "ctrl-p", |app, effects| {
        let speed = app.ui.timeline.as_ref().unwrap().speed;
        speed == Some(10.0) && plays(effects, PlayRequest::Play(10.0))
    }),
    script("take", ": t a k e enter", |app, effects| {
        let holds = app.ui.lease.as_ref().unwrap().state.yours;
        holds && effects.is_empty() && app.ui.message.is_some()
    }),
    script("give", ": g i v e enter", |_, effects| {
        effects == [Effect::Lease(LeaseRequest::Release)]
    }),
    script("palette", ":", |app, _| {
        matches!(app.ui.overlay, Some(Overlay::Prompt(_)))
    }),
    script("vm-log", "M", |app, effects| {
        matches!(app.ui.overlay, Some(Overlay::MachineLog(_)))
            && matches!(effects, [Effect::Work(Job::MachineLog { .. })])
    }),
    script("profile", ": p r o f i l e enter", |app, _| {
        matches!(app.ui.overlay, Some(Overlay::Page(_)))
    }),
    script("theme", ": t h e m e space l i g enter", |app, _| {
        app.ui.message.is_none()
    }),
    script("images", ": i m a g e s space o f f enter", |app, _| {
        !app.ui.terminal.shows_pictures()
    }),
    script(
        "picture-rate",
        ": p i c t u r e - r tab 2 0 enter",
        |app, _| {
            app.ui
                .message
                .as_ref()
                .is_none_or(|said| said.role != Role::Danger)
        },
    ),
    script("about", ": a b o u t enter", |app, _| {
        matches!(app.ui.overlay, Some(Overlay::About))
    }),
    script("ascii", ": a s c i i enter", |app, _| {
        app.ui.glyphs == arpo::tui::app::Glyphs::Ascii
    }),
    script("mouse", ": m o u s e enter", |_, effects| {
        effects == [Effect::Mouse(true)]
    }),
    script("redraw", "ctrl-l", |_, effects| {
        effects == [Effect::Repaint]
    }),
    script("suspend", "ctrl-z", |_, effects| {
        effects == [Effect::Suspend]
    }),
    script("help", "?", |app, _| {
        matches!(app.ui.overlay, Some(Overlay::Help(_)))
    }),
    script("keys", ": k e y s enter", |app, _| {
        matches!(app.ui.overlay, Some(Overlay::Page(_)))
    }),
    script("detach", "Q", |_, effects| {
        matches!(effects, [Effect::Leave(_)])
    }),
    script("quit", "q", |app, _| {
        matches!(app.ui.overlay, Some(Overlay::Quit(_)))
    }),
];

/// A live run that holds the lease, or a recorded one with a time line.
fn app_for(command: &str) -> App {
    let mut app = app(ColorDepth::None);
    PROFILE.clone_into(&mut app.ui.profile);
    if COMMANDS
        .iter()
        .any(|row| row.name == command && row.scope == Scope::Held)
    {
        let (mut held_app, episode) = held(HoldReason::Asked, candidate(412.0, -0.12));
        propose(&mut held_app, episode);
        return held_app;
    }
    if COMMANDS
        .iter()
        .any(|row| row.name == command && row.recorded)
    {
        let mark = |iteration| IterationMark {
            iteration,
            seq: 10 * (iteration + 1),
            at_ms: 0,
        };
        let info = TimelineInfo {
            marks: vec![mark(0), mark(1)],
            end_seq: 9_000,
            end_ms: 9_000,
        };
        app.ui.link = Link::Recorded;
        app.ui.timeline = Some(TimelineUi::default());
        update(&mut app, Input::Timeline(std::sync::Arc::new(info)));
    } else {
        if command == "resume-evaluation" {
            let kind = EventKind::EvaluationCancelled {
                evaluation: 3,
                done: 20,
                reason: "asked".to_owned(),
            };
            let news = event(&app, kind);
            update(&mut app, news);
        }
        let lease = LeaseState {
            yours: true,
            ..LeaseState::default()
        };
        update(&mut app, Input::Lease(lease));
    }
    app
}

#[test]
fn every_command_has_a_script_that_does_what_it_says() {
    let scripted: BTreeSet<_> = SCRIPTS.iter().map(|script| script.command).collect();
    let known: BTreeSet<_> = COMMANDS.iter().map(|row| row.name).collect();
    assert_eq!(
        scripted, known,
        "a command without a script, or the other way"
    );
    for script in SCRIPTS {
        let mut app = app_for(script.command);
        let effects = press(&mut app, script.keys);
        assert!(
            (script.check)(&app, &effects),
            "{}: {:?} gives {effects:?}, and says {:?}",
            script.command,
            script.keys,
            app.ui.message
        );
        let row = command_named(script.command).unwrap();
        let asks = effects
            .iter()
            .any(|effect| matches!(effect, Effect::Send(..)));
        assert_eq!(asks, row.danger > Danger::Harmless, "{}", script.command);
    }
}
