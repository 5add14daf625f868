//! Desktops with machines of their own: how they stand, on every screen that says so, and the log
//! of each.

use arpo::event::{MachineView, RunState};
use arpo::tui::app::Glyphs;
use arpo::tui::machine_log::MachineLogUi;
use arpo::tui::machines::{self, Standing};
use arpo::tui::work::{Job, Worked};
use arpo::types::{
    ImageHash, LayerStatus, LogPlace, MachineHealth, MachineLog, MachinePhase, MachineStatus,
};

use super::*;

/// Tells something so many ms after what was told before.
fn tell(app: &mut App, after_ms: u64, kind: EventKind) {
    let at_ms = app.run.at_ms + after_ms;
    let seq = app.run.next_seq;
    let event = Event { seq, at_ms, kind };
    update(app, Input::Events(vec![Arc::new(event)]));
}

fn status(phase: MachinePhase, limit_s: u64, then: &str, detail: &str) -> MachineStatus {
    MachineStatus {
        phase,
        limit_ms: (limit_s > 0).then_some(limit_s * 1000),
        then: then.to_owned(),
        detail: detail.to_owned(),
    }
}

/// Layers from the lowest with what each took, ms; the last one with an error if there is one.
fn layers(took_ms: &[u64], error: &str) -> Vec<LayerStatus> {
    let names = ["machine", "control", "tcp", "http", "display", "execute"];
    let all = names.into_iter().zip(took_ms);
    let mut all: Vec<LayerStatus> = all
        .map(|(layer, took_ms)| LayerStatus {
            layer: layer.to_owned(),
            took_ms: *took_ms,
            error: String::new(),
        })
        .collect();
    error.clone_into(&mut all.last_mut().unwrap().error);
    all
}

fn health(kind: &str, layers: Vec<LayerStatus>, act_ms: Option<u64>) -> MachineHealth {
    MachineHealth {
        layers,
        kind: kind.to_owned(),
        memory_mb: Some(812),
        act_ms,
        baseline_ms: act_ms.map(|_| 120),
        revert_ms: Some(2_140),
        reverts: 14,
    }
}

const ALL_UP: [u64; 6] = [1, 2, 1, 8, 31, 44];

/// The recorded run, with a machine in every state under its first desktops.
fn with_machines() -> App {
    let mut app = app(ColorDepth::None);
    let run = |phase| status(phase, 0, "", "");
    let told = [
        (
            20,
            9,
            status(MachinePhase::Booting, 2, "killed, try 3 of 3", "disk"),
        ),
        (0, 1, run(MachinePhase::Ready)),
        (0, 4, run(MachinePhase::Ready)),
        (0, 7, run(MachinePhase::Ready)),
        (
            20_000,
            0,
            status(
                MachinePhase::Quarantined,
                300,
                "tried once more",
                "no space left on the host for its overlay: 210 MB of 2000 MB",
            ),
        ),
        (
            0,
            2,
            status(
                MachinePhase::Suspect,
                30,
                "taken for lost",
                "http does not answer",
            ),
        ),
        (
            0,
            8,
            status(MachinePhase::Off, 0, "", "QEMU ended with signal 9"),
        ),
        (
            0,
            10,
            status(MachinePhase::Queued, 0, "", "waits for 1024 MB of memory"),
        ),
        (
            0,
            6,
            status(MachinePhase::Checking, 60, "killed, try 1 of 3", "http"),
        ),
        (
            0,
            5,
            status(MachinePhase::Booting, 120, "killed, try 2 of 3", "kernel"),
        ),
    ];
    for (after_ms, desktop, status) in told {
        tell(
            &mut app,
            after_ms,
            EventKind::MachineChanged { desktop, status },
        );
    }
    let refused = layers(&[1, 2, 1, 3], "connection refused");
    for (desktop, health) in [
        (1, health("kvm", layers(&ALL_UP, ""), Some(118))),
        (
            2,
            health(
                "tcg",
                layers(&[1, 2, 1, 5000], "no answer in 5 s"),
                Some(131),
            ),
        ),
        (3, health("tcg", layers(&ALL_UP, ""), Some(131))),
        (4, health("tcg", layers(&ALL_UP, ""), Some(388))),
        (6, health("tcg", refused, None)),
        (7, health("tcg", layers(&ALL_UP, ""), Some(131))),
    ] {
        tell(&mut app, 0, EventKind::MachineMeasured { desktop, health });
    }
    let image = ImageHash("0123456789abcdef0123456789abcdef".into());
    tell(&mut app, 0, EventKind::MachineSeen { desktop: 2, image });
    let frozen = run(MachinePhase::Frozen);
    tell(
        &mut app,
        5_000,
        EventKind::MachineChanged {
            desktop: 3,
            status: frozen,
        },
    );
    app.ui.fleet.order.clear();
    arpo::tui::fleet::reorder(&mut app);
    update(&mut app, Input::Clock(1_000));
    app
}

/// Goes to a desktop on the page of desktops.
fn go_to(app: &mut App, desktop: u32) {
    press(app, "b");
    (app.ui.fleet.row, app.ui.fleet.sample) = (desktop / 8 * 8, desktop as usize % 8);
    app.ui.fleet.is_chosen = true;
}

#[test]
fn machines_look_as_committed() {
    for (name, desktop) in [
        ("quarantined", 0),
        ("suspect", 2),
        ("frozen", 3),
        ("slow", 4),
        ("booting", 5),
        ("checking", 6),
        ("stale", 7),
        ("ended", 8),
        ("overdue", 9),
    ] {
        for (width, height) in SIZES {
            let mut app = with_machines();
            go_to(&mut app, desktop);
            let text = text_of(&draw_at(&mut app, width, height));
            let path = format!("screens/machines_{name}_{width}x{height}.txt");
            check_file(&here(&path), &text);
        }
    }
}

#[test]
fn groups_cards_and_the_legend_say_what_machines_are_at() {
    for (name, keys) in [
        ("groups", ""),
        ("cards", "z"),
        ("gallery", "b z z"),
        ("help", "? / m a c h i n e"),
        ("legend", "? tab"),
    ] {
        for (width, height) in SIZES {
            let mut app = with_machines();
            press(&mut app, keys);
            let text = text_of(&draw_at(&mut app, width, height));
            let path = format!("screens/machines_{name}_{width}x{height}.txt");
            check_file(&here(&path), &text);
        }
    }
}

#[test]
fn machines_are_told_of_in_ascii() {
    for desktop in [2, 5, 6] {
        for (width, height) in SIZES {
            let mut app = with_machines();
            app.ui.glyphs = Glyphs::Ascii;
            go_to(&mut app, desktop);
            let text = text_of(&draw_at(&mut app, width, height));
            let drawn = |c: &char| ('\u{2010}'..='\u{2bff}').contains(c);
            let left: String = text.chars().filter(drawn).collect();
            assert_eq!(left, "", "{desktop} {width}x{height}:\n{text}");
            let path = format!("screens/ascii_machines_{desktop}_{width}x{height}.txt");
            check_file(&here(&path), &text);
        }
    }
}

#[test]
fn no_size_panics_with_machines() {
    for depth in [ColorDepth::Ansi256, ColorDepth::None] {
        let mut app = with_machines();
        app.ui.theme = Theme::built_in("default", depth).unwrap();
        for (desktop, keys) in [(2, ""), (5, "z"), (6, "z"), (0, "z M"), (9, "esc 2")] {
            app.ui.fleet.by_desktop = false;
            go_to(&mut app, desktop);
            press(&mut app, keys);
            for width in (1..=200).step_by(23) {
                for height in (1..=50).step_by(3) {
                    draw_at(&mut app, width, height);
                }
            }
        }
    }
}

fn view(phase: MachinePhase, limit_s: u64, then: &str, detail: &str) -> MachineView {
    MachineView {
        status: status(phase, limit_s, then, detail),
        since_ms: 1_000,
        ..MachineView::default()
    }
}

#[test]
fn a_picture_says_that_it_is_old_or_taken_past_a_server_that_does_not_answer() {
    use MachinePhase::{Frozen, Ready, Suspect};
    let mut app = with_machines();
    for (phase, seen_from_outside, age_s, says) in [
        (Ready, false, 3, ""),
        (Ready, false, 40, "40s old"),
        // While a task is set up.
        (Ready, true, 3, ""),
        (Ready, true, 40, "40s old"),
        (Suspect, true, 3, "from outside"),
        (Suspect, true, 40, "40s old, from outside"),
        (Frozen, false, 40, ""),
    ] {
        let desktop = &mut app.run.desktops[2];
        desktop.image_ms = 0;
        desktop.machine = Some(MachineView {
            seen_from_outside,
            ..view(phase, 0, "", "")
        });
        let forms = machines::picture_forms(&app.run, 2, age_s * 1_000);
        let said = forms.first().map_or("", String::as_str);
        assert_eq!(said, says, "{phase:?} {seen_from_outside} {age_s}");
    }
}

#[test]
fn how_a_machine_stands_is_said_in_as_many_words_as_fit() {
    use MachinePhase::{Booting, Frozen, Off, Quarantined, Queued, Ready, Suspect};
    let boot = || view(Booting, 120, "killed, try 2 of 3", "kernel");
    let lost = || view(Quarantined, 300, "tried once more", "disk full on the host");
    for (machine, now_s, cells, words, standing) in [
        (
            boot(),
            7,
            60,
            "booting · kernel 6s of 120s, then killed, try 2 of 3",
            Standing::Busy,
        ),
        (boot(), 7, 50, "booting · kernel 6s of 120s", Standing::Busy),
        (boot(), 7, 20, "booting 6s of 120s", Standing::Busy),
        (boot(), 7, 10, "booting", Standing::Busy),
        (boot(), 7, 4, "boo…", Standing::Busy),
        (
            boot(),
            153,
            40,
            "booting · kernel 32s overdue",
            Standing::Overdue,
        ),
        (boot(), 153, 20, "booting 32s overdue", Standing::Overdue),
        (
            lost(),
            21,
            80,
            "quarantined · disk full on the host, 20s of 300s, then tried once more",
            Standing::Fault,
        ),
        (
            lost(),
            21,
            40,
            "quarantined · disk full on the host",
            Standing::Fault,
        ),
        (
            lost(),
            21,
            30,
            "quarantined · disk full on …",
            Standing::Fault,
        ),
        // Left alone for longer than was said, it is a fault all the same.
        (lost(), 900, 12, "quarantined", Standing::Fault),
        (
            view(Off, 0, "", "QEMU ended"),
            5,
            30,
            "ended · QEMU ended, 4s",
            Standing::Fault,
        ),
        (view(Off, 0, "", ""), 5, 30, "off 4s", Standing::Quiet),
        (
            view(Ready, 5, "", ""),
            900,
            30,
            "ready 14m",
            Standing::Quiet,
        ),
        (view(Frozen, 0, "", ""), 5, 30, "frozen 4s", Standing::Quiet),
        (
            view(Queued, 0, "", "memory"),
            5,
            30,
            "queued · memory, 4s",
            Standing::Busy,
        ),
        (
            view(Suspect, 30, "", ""),
            5,
            30,
            "suspect 4s of 30s",
            Standing::Suspect,
        ),
        (
            view(Suspect, 1, "", "\u{1b}[31mhttp\nis\tgone"),
            9,
            60,
            "suspect · [31mhttp is gone, 7s overdue",
            Standing::Overdue,
        ),
    ] {
        let now_ms = now_s * 1000;
        assert_eq!(machines::words(&machine, now_ms, cells), words);
        assert_eq!(machines::standing(&machine, now_ms), standing, "{words}");
    }
}

#[test]
fn layers_are_up_awaited_broken_or_not_asked() {
    use MachinePhase::{Booting, Checking, Ready, Suspect};
    let no = "no answer";
    for (phase, asked, error, measured_ms, line) in [
        (
            Ready,
            6,
            "",
            500,
            "machine✓ control✓ tcp✓ http✓ display✓ execute✓",
        ),
        // A machine may lack layers; then there is nothing above the last one.
        (Ready, 4, "", 500, "machine✓ control✓ tcp✓ http✓"),
        (
            Suspect,
            4,
            no,
            500,
            "machine✓ control✓ tcp✓ http✗ display– execute–",
        ),
        (
            Checking,
            4,
            no,
            1_000,
            "machine✓ control✓ tcp✓ http… display– execute–",
        ),
        (
            Checking,
            3,
            "",
            1_000,
            "machine✓ control✓ tcp✓ http… display– execute–",
        ),
        (
            Checking,
            6,
            "",
            1_000,
            "machine✓ control✓ tcp✓ http✓ display✓ execute✓",
        ),
        // What was measured before it was started is not of it.
        (Booting, 6, "", 999, ""),
    ] {
        let mut machine = view(phase, 0, "", "");
        machine.health = Some(health("", layers(&ALL_UP[..asked], error), None));
        machine.health_ms = measured_ms;
        let shown = machines::layers(&machine);
        let shown: Vec<String> = shown
            .iter()
            .map(|(name, mark, _)| format!("{name}{}", mark.sign(false)))
            .collect();
        assert_eq!(shown.join(" "), line, "{phase:?}");
    }
}

#[test]
fn the_header_counts_machines_and_names_the_longest_overdue() {
    let mut run = with_machines().run;
    let now_ms = run.at_ms;
    let (forms, _) = machines::fleet_forms(&run, now_ms).unwrap();
    assert_eq!(
        forms[0],
        "4/11 up, 1 ended, 1 quarantined, 1 suspect, 2 booting, 1 checking, 1 queued, d09 23s overdue"
    );
    assert_eq!(forms[1], "4/11 up, 1 ended, d09 23s overdue");
    assert_eq!(forms[2], "4/11 up, d09 23s overdue");
    assert_eq!(forms.last().unwrap(), "4/11 up");
    assert!(
        forms
            .iter()
            .is_sorted_by_key(|form| std::cmp::Reverse(form.len()))
    );
    // While all are up or soon will be, and for simulated desktops, nothing is said.
    for desktop in &mut run.desktops {
        if let Some(machine) = &mut desktop.machine {
            machine.status = status(MachinePhase::Ready, 0, "", "");
        }
    }
    let machine = run.desktops[1].machine.as_mut().unwrap();
    machine.status = status(MachinePhase::Restoring, 60, "", "");
    machine.since_ms = now_ms - 1_000;
    assert_eq!(machines::fleet_forms(&run, now_ms), None);
    let (forms, _) = machines::fleet_forms(&run, now_ms + 9_000).unwrap();
    assert_eq!(forms, ["10/11 up, 1 restoring", "10/11 up"]);
    let machine = run.desktops[1].machine.as_mut().unwrap();
    machine.status = status(MachinePhase::Frozen, 0, "", "");
    assert_eq!(machines::fleet_forms(&run, now_ms), None);
    assert_eq!(
        machines::fleet_forms(&app(ColorDepth::None).run, now_ms),
        None
    );
    assert_eq!(machines::fleet_forms(&RunState::default(), 0), None);
}

#[test]
fn rows_with_machines_in_trouble_come_up() {
    let mut app = app(ColorDepth::None);
    press(&mut app, "b");
    let first = |app: &mut App| {
        arpo::tui::fleet::reorder(app);
        app.ui.fleet.order[0]
    };
    assert_eq!(first(&mut app), 0);
    let booting = status(MachinePhase::Booting, 60, "killed", "");
    let desktop = 9;
    tell(
        &mut app,
        0,
        EventKind::MachineChanged {
            desktop,
            status: booting,
        },
    );
    assert_eq!(first(&mut app), 0);
    tell(
        &mut app,
        61_000,
        EventKind::StateChanged {
            state: TrainerState::Running,
        },
    );
    assert_eq!(first(&mut app), 8, "overdue");
    let lost = status(MachinePhase::Quarantined, 0, "", "disk full");
    let desktop = 3;
    tell(
        &mut app,
        0,
        EventKind::MachineChanged {
            desktop,
            status: lost,
        },
    );
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert_eq!(first(&mut app), 0, "quarantined");
    assert!(
        text.contains("overdue 1s") || text.contains("late 1s"),
        "{text}"
    );
}

#[test]
fn a_desktop_without_an_episode_is_rebooted_and_the_question_names_its_state() {
    for (desktop, victim) in [
        (0, "desktop 0, quarantined · no space left …"),
        (5, "desktop 5 with g04.s5, booting · kernel 6s of 120s"),
        (8, "desktop 8, ended · QEMU ended with …"),
        (10, "desktop 10, queued · waits for 1024 MB …"),
        (11, "desktop 11"),
    ] {
        let mut app = with_machines();
        go_to(&mut app, desktop);
        assert!(press(&mut app, "ctrl-b").is_empty());
        let Some(Overlay::Confirm(question)) = &app.ui.overlay else {
            panic!("{desktop}: nothing is asked: {:?}", app.ui.message);
        };
        assert_eq!(question.victim, victim);
        let effects = press(&mut app, "y");
        let reboot = Command::RebootDesktop { desktop };
        assert_eq!(effects, [Effect::Send(0, reboot)]);
    }
}

fn opened(app: &App) -> &MachineLogUi {
    match &app.ui.overlay {
        Some(Overlay::MachineLog(log)) => log,
        other => panic!("{other:?}"),
    }
}

/// Answers what goes on after the place that the open log ends at.
fn answer(app: &mut App, desktop: u32, piece: Result<MachineLog, String>) -> Vec<Effect> {
    let goes_on = piece.as_ref().is_ok_and(|piece| piece.goes_on);
    let after = if goes_on { opened(app).end() } else { None };
    answer_after(app, desktop, after, piece)
}

fn answer_after(
    app: &mut App,
    desktop: u32,
    after: Option<LogPlace>,
    piece: Result<MachineLog, String>,
) -> Vec<Effect> {
    let worked = Worked::MachineLog(desktop, after, piece);
    update(app, Input::Worked(worked)).effects
}

fn place(bytes: u64) -> LogPlace {
    LogPlace { file: 7, bytes }
}

fn piece(lines: impl IntoIterator<Item = String>, bytes: u64, goes_on: bool) -> MachineLog {
    MachineLog {
        lines: lines.into_iter().collect(),
        end: Some(place(bytes)),
        goes_on,
    }
}

fn kernel_lines(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|n| format!("[{n:>5}.000000] virtio_blk virtio2: [vda] line {n}"))
}

#[test]
fn logs_of_machines_look_as_committed() {
    for (width, height) in SIZES {
        let mut app = with_machines();
        go_to(&mut app, 5);
        update(&mut app, Input::Resize(width, height));
        press(&mut app, "M");
        let hostile = "\u{1b}]0;title\u{7}\u{202e}evil\u{1b}[2J ".to_owned();
        let long = "x y ".repeat(60);
        let cjk = "磁盘错误：超级块无法读取。".repeat(8);
        let lines = kernel_lines(0..60).chain([hostile, long, cjk, String::new()]);
        let lines = lines.chain(["ARPO-BOOT disk 4.2".to_owned()]);
        answer(&mut app, 5, Ok(piece(lines, 4_000, false)));
        let check = |app: &mut App, name: &str| {
            let text = text_of(&draw_at(app, width, height));
            let path = format!("screens/machine_log_{name}_{width}x{height}.txt");
            check_file(&here(&path), &text);
        };
        check(&mut app, "end");
        press(&mut app, "g");
        check(&mut app, "first");
    }
}

#[test]
fn a_log_is_followed_piece_by_piece_while_it_is_open() {
    let mut app = with_machines();
    go_to(&mut app, 5);
    update(&mut app, Input::Resize(80, 24));
    let ask = |after| Effect::Work(Job::MachineLog { desktop: 5, after });
    assert_eq!(press(&mut app, "M"), [ask(None)]);
    // It is not asked again while the answer is on its way, and then as soon as it has come.
    assert!(update(&mut app, Input::Clock(3_000)).effects.is_empty());
    let first = piece(kernel_lines(0..98), 3_900, false);
    assert_eq!(answer(&mut app, 5, Ok(first)), [ask(Some(place(3_900)))]);
    let next = piece(kernel_lines(98..100), 4_000, true);
    assert_eq!(answer(&mut app, 5, Ok(next)), []);
    assert_eq!(
        update(&mut app, Input::Clock(4_000)).effects,
        [ask(Some(place(4_000)))]
    );
    answer(&mut app, 5, Ok(piece(kernel_lines(100..102), 4_100, true)));
    assert_eq!((opened(&app).lines.len(), opened(&app).up), (102, 0));
    // Who looks at older lines goes on looking at them.
    press(&mut app, "k k k");
    let shown = text_of(&draw_at(&mut app, 80, 24));
    assert!(shown.contains("3 lines below") && !shown.contains("line 99\n"));
    assert_eq!(
        update(&mut app, Input::Clock(5_500)).effects,
        [ask(Some(place(4_100)))]
    );
    answer(&mut app, 5, Ok(piece(kernel_lines(102..104), 4_200, true)));
    assert_eq!(opened(&app).up, 5);
    // At the top, one step down moves the page at once.
    press(&mut app, "g j");
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(
        text.contains("line 1 ") && !text.contains("line 0 "),
        "{text}"
    );
    press(&mut app, "G");
    assert_eq!(opened(&app).up, 0);
    // A log that went on in another file takes the place of what was shown.
    answer(&mut app, 5, Ok(piece(kernel_lines(7..9), 90, false)));
    assert_eq!(opened(&app).lines.len(), 2);
    // An answer that was given up, and asked for again, comes after all.
    update(&mut app, Input::Clock(6_600));
    update(&mut app, Input::Clock(22_000));
    answer(&mut app, 5, Ok(piece(kernel_lines(9..10), 130, true)));
    let late = piece(kernel_lines(9..10), 130, true);
    answer_after(&mut app, 5, Some(place(90)), Ok(late));
    assert_eq!(opened(&app).lines.len(), 3);
    // What cannot be read is said, and what was read stays; another desktop's is not taken.
    answer(
        &mut app,
        5,
        Err("the connection to the engine was lost".to_owned()),
    );
    answer(&mut app, 6, Ok(piece(kernel_lines(0..50), 1, false)));
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(text.contains("connection to the engine was lost") && text.contains("line 8"));
    press(&mut app, "esc");
    assert_eq!(app.ui.overlay, None);
    assert!(update(&mut app, Input::Clock(60_000)).effects.is_empty());
}

#[test]
fn the_log_of_a_recorded_run_is_read_once() {
    let mut app = with_machines();
    app.ui.link = Link::Recorded;
    let asked = press(&mut app, ": v m - l o g space 1 2 enter");
    let job = Job::MachineLog {
        desktop: 12,
        after: None,
    };
    assert_eq!(asked, [Effect::Work(job)]);
    answer(&mut app, 12, Ok(MachineLog::default()));
    assert!(update(&mut app, Input::Clock(9_000)).effects.is_empty());
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(text.contains("nothing was logged"), "{text}");
    press(&mut app, "esc : v m - l o g space 9 9 9 enter");
    let said = &app.ui.message.as_ref().unwrap().text;
    assert_eq!(said, "there is no desktop 999");
    press(&mut app, ": v m - l o g space x enter");
    let said = &app.ui.message.as_ref().unwrap().text;
    assert_eq!(said, "x is no desktop; write its number, as in: vm-log 3");
}

#[test]
fn a_log_keeps_a_bounded_number_of_lines() {
    let mut app = with_machines();
    press(&mut app, ": v m - l o g space 1 enter");
    for n in 0..8 {
        let lines = kernel_lines(n * 1_000..(n + 1) * 1_000);
        answer(&mut app, 1, Ok(piece(lines, 0, n > 0)));
    }
    let log = opened(&app);
    assert_eq!(log.lines.len(), 5_000);
    assert!(log.lines[0].ends_with("line 3000"), "{}", log.lines[0]);
}
