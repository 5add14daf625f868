//! Keys on the screens for training, evaluations, replay and logs: what they ask for and show.

use arpo::event::{Command, EvalWhen};
use arpo::tui::app::{App, Overlay, RolloutPage, Screen};
use arpo::tui::changes::{Changes, Region};
use arpo::tui::evals::EvalKey;
use arpo::tui::theme::ColorDepth;
use arpo::tui::train::Compared;
use arpo::tui::update::{Effect, Input, update};
use arpo::tui::work::{Job, OtherRun, Worked};
use arpo::types::{Iteration, Point};

use super::{app, draw_at, press, text_of};

fn screen_of(app: &mut App) -> String {
    text_of(&draw_at(app, 120, 40))
}

#[test]
fn an_evaluation_is_launched_and_cancelled_by_keys() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "4 e");
    assert!(matches!(app.ui.overlay, Some(Overlay::Launch(_))));
    let effects = press(&mut app, "tab tab tab backspace 2 enter");
    let [Effect::Send(_, Command::Evaluate(request))] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((request.tasks.as_str(), request.trials), ("heldout", 2));
    assert_eq!(request.when, EvalWhen::Now { desktops: 4 });
    // The newest runs; the one before is over.
    let cancel = Command::CancelEvaluation { evaluation: 3 };
    assert!(press(&mut app, "X").is_empty());
    assert!(matches!(&press(&mut app, "y")[..], [Effect::Send(_, command)] if *command == cancel));
    assert!(press(&mut app, "j X").is_empty());
    assert!(press(&mut app, "R").is_empty());
    let message = app.ui.message.as_ref().unwrap().text.clone();
    assert_eq!(message, "evaluation 2 was not cancelled");
}

#[test]
fn stored_successes_are_pinned_dropped_and_looked_through() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "5");
    let place = |app: &App| app.ui.replay.frame;
    press(&mut app, "o o j l l h");
    assert_eq!(place(&app), 1);
    let effects = press(&mut app, "L D y");
    assert!(
        matches!(
            &effects[..],
            [
                Effect::Send(_, Command::PinStored { pinned: true, .. }),
                Effect::Send(_, Command::DropStored { .. })
            ]
        ),
        "{effects:?}"
    );
    // A task without a success has nothing to pin.
    press(&mut app, "E");
    assert!(press(&mut app, "L").is_empty());
    assert!(screen_of(&mut app).contains("EMPTY never"));
    press(&mut app, "E");
    press(&mut app, "k k k k j enter");
    assert_eq!(app.ui.screen, Screen::Rollout);
}

#[test]
fn another_run_is_read_off_the_drawing_thread_and_drawn() {
    let mut app = app(ColorDepth::None);
    let effects = press(&mut app, "3 : c o m p a r e space x enter");
    assert_eq!(
        effects,
        [Effect::Work(Job::Compare(OtherRun::named(&app, "x")))]
    );
    let mut history = app.run.history.clone();
    for report in &mut history {
        report.reward_mean.0 = 0.1;
    }
    let evaluations = app.run.evaluations.iter().cloned().collect();
    let compared = Compared {
        name: "base".to_owned(),
        history,
        evaluations,
    };
    update(&mut app, Input::Worked(Worked::Compared(compared)));
    let text = screen_of(&mut app);
    assert!(text.contains("other .10"), "{text}");
    assert!(text.contains("base reward .10"), "{text}");
    press(&mut app, "4");
    let text = screen_of(&mut app);
    assert!(
        text.contains("8 evaluations") && text.contains("other #3"),
        "{text}"
    );
    assert_eq!(app.ui.evals.selected, None::<EvalKey>);
}

#[test]
fn the_cursor_is_one_for_all_charts_and_the_table_is_exported() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "3 h h");
    assert_eq!(app.ui.train.cursor, Some(Iteration(9)));
    let text = screen_of(&mut app);
    assert!(
        text.contains("iteration 10 [evaluation operator, 1 replayed]"),
        "{text}"
    );
    let effects = press(&mut app, "X");
    let [Effect::Work(Job::Write { path, text })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(path.to_str(), Some("demo-1129-1631-iterations.csv"));
    assert_eq!(text.lines().count(), 13);
    press(&mut app, "esc");
    assert_eq!(app.ui.train.cursor, None);
}

#[test]
fn changes_are_asked_for_once_a_step_and_shown() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "j l enter H");
    let effects = press(&mut app, "d");
    let [Effect::Work(Job::Changes { before, after })] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert!(update(&mut app, Input::Clock(100)).effects.is_empty());
    let region = Region {
        from: Point { x: 0.0, y: 0.0 },
        to: Point { x: 32.0, y: 32.0 },
    };
    let changes = Ok(Changes {
        share: 0.021,
        regions: vec![region],
        count: 1,
    });
    let (before, after) = (before.clone(), after.clone());
    let worked = Worked::Changes {
        before,
        after,
        changes,
    };
    update(&mut app, Input::Worked(worked));
    let text = screen_of(&mut app);
    assert!(text.contains("changed: 1 region, 2.1% of pixels"), "{text}");
    // Another step is another pair.
    assert_eq!(press(&mut app, "l").len(), 1);
    press(&mut app, "t");
    assert_eq!(app.ui.rollout.page, RolloutPage::Thought);
    press(&mut app, "c esc");
    assert_eq!(app.ui.rollout.page, RolloutPage::All);
}

#[test]
fn logs_are_filtered_searched_and_lead_to_the_episode() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "6 / d e s k t o p s space 6 4 enter");
    let text = screen_of(&mut app);
    assert!(text.contains("1 rows"), "{text}");
    assert!(
        text.contains("$ arpo ctl demo-1129-1631 set-desktops 64"),
        "{text}"
    );
    press(&mut app, "esc > >");
    assert!(screen_of(&mut app).contains("level error and up"));
    press(&mut app, "< <");
    // A filter that cannot be read changes nothing.
    press(&mut app, "/ a ( enter");
    assert!(app.ui.logs.filter.is_none());
    press(&mut app, "esc ctrl-f c r a s h enter enter");
    assert_eq!(app.ui.screen, Screen::Rollout);
    let own = "[grpo]\nclip_low = 0.2\n";
    (app.ui.root, app.ui.profile) = ("/data/runs/demo-1129-1631".into(), own.to_owned());
    let effects = press(&mut app, ": p r o f i l e space d i f f space b enter");
    let job = Job::ProfileDiff {
        name: "demo-1129-1631".to_owned(),
        profile: own.to_owned(),
        other: OtherRun {
            typed: "b".into(),
            beside: "/data/runs".into(),
        },
    };
    assert_eq!(effects, [Effect::Work(job)]);
    let lines = vec!["grpo.clip_low".to_owned(), "  - 0.3".to_owned()];
    update(
        &mut app,
        Input::Worked(Worked::Text("Profile".to_owned(), lines)),
    );
    assert!(screen_of(&mut app).contains("grpo.clip_low"));
    press(&mut app, "q");
    assert_eq!(app.ui.overlay, None);
}
