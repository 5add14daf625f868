//! The debugger's panel: golden screens, and what its keys ask.

use arpo::event::{
    BreakOn, Breakpoint, Candidate, CandidatesProposed, DebugCommand, Decision, EpisodeHeld,
    EpisodeReleased, HoldReason, HoldTarget,
};
use arpo::tui::app::Overlay;
use arpo::types::{Action, EpisodeId, Point};

use super::*;

pub(super) fn candidate(x: f32, logprob: f64) -> Candidate {
    Candidate {
        reply: format!("Thought: The file menu is open. 打开\nAction: click(start_box='({x},88)')"),
        thought: "The file menu is open. 打开".to_owned(),
        actions: vec![Action::Click {
            at: Point { x, y: 88.0 },
        }],
        malformed: None,
        tokens: 14,
        mean_logprob: arpo::event::F(logprob),
    }
}

fn broken() -> Candidate {
    Candidate {
        reply: "Action: clack(start_box='(1,2)')".to_owned(),
        malformed: Some("at byte 8: no action is called clack".to_owned()),
        tokens: 9,
        mean_logprob: arpo::event::F(-2.25),
        ..Candidate::default()
    }
}

/// A running episode of the recorded run.
fn running(app: &App) -> EpisodeId {
    let mut all = app.run.episodes.values();
    let found = all.find(|episode| episode.is_running() && episode.steps.len() == 3);
    found.unwrap().id
}

/// The recorded run with an episode held at its third step, shown on Rollout.
pub(super) fn held(reason: HoldReason, candidate: Candidate) -> (App, EpisodeId) {
    let mut app = app(ColorDepth::None);
    let episode = running(&app);
    let held = EpisodeHeld {
        episode,
        step: 2,
        reason,
        instruction: "Change the 2 in H2O into a subscript.".to_owned(),
        candidate,
    };
    tell(&mut app, EventKind::EpisodeHeld(Box::new(held)));
    app.ui.rollout.pinned = Some(episode);
    press(&mut app, "2");
    (app, episode)
}

fn tell(app: &mut App, kind: EventKind) {
    let input = event(app, kind);
    update(app, input);
}

pub(super) fn propose(app: &mut App, episode: EpisodeId) {
    tell(
        app,
        EventKind::CandidatesProposed(CandidatesProposed {
            episode,
            step: 2,
            candidates: vec![candidate(40.0, -0.5), broken(), candidate(200.0, -1.25)],
        }),
    );
}

fn breakpoint() -> HoldReason {
    HoldReason::Breakpoint(Breakpoint {
        id: 2,
        on: BreakOn::ParseError,
        episode: None,
    })
}

#[test]
fn the_panel_looks_as_committed() {
    for (width, height) in SIZES {
        let check = |name: &str, app: &mut App| {
            let terminal = draw_at(app, width, height);
            let path = here(&format!("screens/{name}_{width}x{height}.txt"));
            check_file(&path, &text_of(&terminal));
        };
        let (mut app, episode) = held(HoldReason::Asked, candidate(412.0, -0.12));
        check("held", &mut app);
        press(&mut app, "1");
        check("held_fleet", &mut app);
        press(&mut app, "2");
        propose(&mut app, episode);
        press(&mut app, "tab tab tab enter");
        update(&mut app, Input::Clock(3_000));
        check("held_candidates", &mut app);
        let (mut app, _) = held(breakpoint(), broken());
        check("held_broken", &mut app);
        press(&mut app, "e enter x ctrl-s");
        let reason = "at byte 8: no action is called clack".to_owned();
        let refused = CommandStatus::Refused { reason };
        update(&mut app, Input::Answer(0, Some((9, refused))));
        check("held_editor", &mut app);
    }
}

#[test]
fn no_size_panics_while_an_episode_is_held() {
    let (mut app, episode) = held(HoldReason::Asked, candidate(412.0, -0.12));
    propose(&mut app, episode);
    for keys in ["", "tab", "e", "esc"] {
        press(&mut app, keys);
        for width in (1..=180).step_by(13) {
            for height in 1..=44 {
                draw_at(&mut app, width, height);
            }
        }
    }
}

fn asked(decision: Decision, episode: EpisodeId) -> Command {
    Command::Debug(DebugCommand::Decide {
        episode,
        step: 2,
        decision,
    })
}

#[test]
fn each_key_asks_its_decision() {
    for (keys, decision) in [
        ("enter", Decision::Accept),
        ("R", Decision::Regenerate { count: 3 }),
        ("tab enter", Decision::Choose { candidate: 1 }),
        ("tab tab tab enter", Decision::Choose { candidate: 3 }),
        ("tab tab tab tab enter", Decision::Accept),
        ("x", Decision::Skip),
        ("c", Decision::Continue),
        ("A", Decision::Abort),
    ] {
        let (mut app, episode) = held(HoldReason::Asked, candidate(412.0, -0.12));
        propose(&mut app, episode);
        let expected = [Effect::Send(0, asked(decision, episode))];
        assert_eq!(press(&mut app, keys), expected, "{keys}");
        // Asked is not done: the episode is held until the engine says otherwise.
        assert!(app.run.held.contains_key(&episode));
    }
}

#[test]
fn nothing_is_asked_about_an_episode_that_is_not_held() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "2");
    for name in [
        "accept",
        "edit",
        "write",
        "regenerate",
        "skip",
        "continue",
        "abort",
    ] {
        let letters: Vec<String> = name.chars().map(String::from).collect();
        let keys = format!(": {} enter", letters.join(" "));
        assert!(press(&mut app, &keys).is_empty(), "{keys}");
        assert!(app.ui.message.as_ref().unwrap().text.contains("not held"));
    }
    let episode = running(&app);
    app.ui.rollout.pinned = Some(episode);
    let target = HoldTarget::Episode { episode };
    let hold = Command::Debug(DebugCommand::Hold {
        target,
        others: false,
    });
    assert_eq!(press(&mut app, "i"), [Effect::Send(0, hold)]);
    let release = Command::Debug(DebugCommand::Release { target });
    assert_eq!(press(&mut app, "I"), [Effect::Send(1, release)]);
}

#[test]
fn a_refused_reply_stays_and_an_answered_one_closes() {
    let (mut app, episode) = held(HoldReason::Asked, candidate(412.0, -0.12));
    let text = |app: &App| match &app.ui.overlay {
        Some(Overlay::Reply(editor)) => Some(editor.area.lines().join("\n")),
        _ => None,
    };
    press(&mut app, "e");
    let before = text(&app).unwrap();
    assert_eq!(before, candidate(412.0, 0.0).reply);
    // Left and opened again it is as it was.
    press(&mut app, "enter ! esc e");
    let reply = format!("{before}\n!");
    assert_eq!(text(&app), Some(reply.clone()));
    let edit = asked(Decision::Edit { reply }, episode);
    assert_eq!(press(&mut app, "ctrl-s"), [Effect::Send(0, edit)]);
    // While it is asked the text stands.
    press(&mut app, "z");
    let refused = CommandStatus::Refused {
        reason: "at byte 3: no call".to_owned(),
    };
    update(&mut app, Input::Answer(0, Some((4, refused))));
    assert_eq!(text(&app), Some(format!("{before}\n!")));
    let shown = text_of(&draw_at(&mut app, 80, 24));
    assert!(shown.contains("refused: at byte 3: no call"), "{shown}");
    press(&mut app, "backspace ctrl-s");
    update(&mut app, Input::Answer(1, Some((5, CommandStatus::Done))));
    assert_eq!(text(&app), None);
    let released = EpisodeReleased {
        episode,
        step: 2,
        decision: Decision::Edit { reply: before },
        human_touched: true,
    };
    tell(&mut app, EventKind::EpisodeReleased(released));
    assert!(app.run.held.is_empty());
    assert!(app.run.episodes[&episode].debug.human_touched);
    press(&mut app, "w");
    assert_eq!(text(&app), None, "there is nothing to write for");
}

#[test]
fn pastes_keep_their_lines() {
    let (mut app, _) = held(HoldReason::Human, Candidate::default());
    press(&mut app, "w");
    let pasted = "Thought: a\r\nAction: wait()\x07";
    update(&mut app, Input::Paste(pasted.to_owned()));
    let Some(Overlay::Reply(editor)) = &app.ui.overlay else {
        panic!("the editor closed")
    };
    assert_eq!(editor.area.lines(), ["Thought: a", "Action: wait()"]);
}
