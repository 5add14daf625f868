//! Tasks in the player and the terminal, with menus and windows, and over several
//! applications.

use rand::Rng;
use serde_json::{Value, json};

use super::office::{cl_add, ma_archive, ma_star, sh_sum};
use super::{OTHERS, Rng64, SCALE, SIZE_PX, both, draft, pick, place, sample};
use crate::env::simulated::app::{App, Kind, Player, Terminal};
use crate::env::simulated::desktop::{Desktop, Placement, Window};
use crate::env::simulated::suite::draft::Draft;
use crate::env::simulated::suite::{compact, words};
use crate::env::simulated::theme::Theme;
use crate::env::simulated::widget::CELL_PX;

const TRACKS: [&str; 6] = ["Aurora", "Blue Hour", "Canyon", "Drift", "Ember", "Fog"];

pub(super) fn player(rng: &mut Rng64) -> Player {
    let tracks = sample(rng, &TRACKS, 4);
    Player {
        tracks: tracks.into_iter().map(str::to_owned).collect(),
        current: 0,
        playing: false,
        volume: rng.random_range(3..7),
    }
}

fn player_draft(player: Player, instruction: String, goal: Vec<(String, Value)>) -> Draft {
    draft("player", App::Player(player), instruction, goal)
}

pub(super) fn pl_play(rng: &mut Rng64) -> Draft {
    let player = player(rng);
    let track = pick(rng, &player.tracks).clone();
    let goal = vec![("/player/playing".to_owned(), json!(track))];
    player_draft(player, format!("Play {track}"), goal)
}

pub(super) fn pl_pause(rng: &mut Rng64) -> Draft {
    let mut player = player(rng);
    player.playing = true;
    let goal = vec![("/player/playing".to_owned(), Value::Null)];
    player_draft(player, "Stop the music".to_owned(), goal)
}

pub(super) fn pl_volume(rng: &mut Rng64) -> Draft {
    let player = player(rng);
    let by = rng.random_range(1..=3);
    let (verb, volume) = if rng.random_bool(0.5) {
        ("Raise", player.volume + by)
    } else {
        ("Lower", player.volume - by)
    };
    let goal = vec![("/player/volume".to_owned(), json!(volume))];
    player_draft(player, format!("{verb} the volume to {volume}"), goal)
}

pub(super) fn pl_both(rng: &mut Rng64) -> Draft {
    let player = player(rng);
    let track = pick(rng, &player.tracks).clone();
    let volume = player.volume + rng.random_range(1..=2);
    let instruction = format!("Play {track} at volume {volume}");
    let goal = vec![
        ("/player/playing".to_owned(), json!(track)),
        ("/player/volume".to_owned(), json!(volume)),
    ];
    player_draft(player, instruction, goal).in_parts()
}

pub(super) fn pl_bad(rng: &mut Rng64) -> Draft {
    let mut player = player(rng);
    let gone = player.tracks.pop().expect("four tracks were made");
    player_draft(player, format!("Play {gone}"), Vec::new())
}

const NAMES: [&str; 6] = ["alpha", "beta", "gamma", "delta", "omega", "sigma"];

fn terminal(rng: &mut Rng64) -> Terminal {
    let names = sample(rng, &NAMES, 3).into_iter().enumerate();
    let kinds = names.map(|(i, name)| {
        let kind = if i == 0 { Kind::Folder } else { Kind::File };
        (name.to_owned(), kind)
    });
    Terminal {
        names: kinds.collect(),
        prompt: String::new(),
        lines: Vec::new(),
    }
}

/// A task in the terminal; `change` is what becomes of the count of names.
fn terminal_draft(
    terminal: Terminal,
    instruction: &str,
    mut goal: Vec<(String, Value)>,
    change: i64,
) -> Draft {
    if change != 0 {
        let count = terminal.names.len() as i64 + change;
        goal.push(("/terminal/count".to_owned(), json!(count)));
    }
    let instruction = format!("{instruction} in the Terminal");
    draft("terminal", App::Terminal(terminal), instruction, goal)
}

fn name_pointer(name: &str) -> String {
    format!("/terminal/names/{name}")
}

pub(super) fn te_make(rng: &mut Rng64) -> Draft {
    let terminal = terminal(rng);
    let name = pick(rng, &words::TYPED);
    let instruction = format!("Make a folder called '{name}'");
    let goal = vec![(name_pointer(name), json!("folder"))];
    terminal_draft(terminal, &instruction, goal, 1)
}

pub(super) fn te_touch(rng: &mut Rng64) -> Draft {
    let terminal = terminal(rng);
    let name = pick(rng, &words::TYPED);
    let instruction = format!("Make an empty file called '{name}'");
    let goal = vec![(name_pointer(name), json!("file"))];
    terminal_draft(terminal, &instruction, goal, 1)
}

pub(super) fn te_remove(rng: &mut Rng64) -> Draft {
    let terminal = terminal(rng);
    let names: Vec<&String> = terminal.names.keys().collect();
    let name = (*pick(rng, &names)).clone();
    let goal = vec![(name_pointer(&name), Value::Null)];
    terminal_draft(terminal, &format!("Remove {name}"), goal, -1)
}

pub(super) fn te_move(rng: &mut Rng64) -> Draft {
    let terminal = terminal(rng);
    let names: Vec<(&String, &Kind)> = terminal.names.iter().collect();
    let (old, kind) = *pick(rng, &names);
    let new = pick(rng, &words::TYPED);
    let instruction = format!("Rename {old} to '{new}'");
    let goal = vec![
        (name_pointer(old), Value::Null),
        (name_pointer(new), json!(kind)),
    ];
    terminal_draft(terminal.clone(), &instruction, goal, 0)
}

/// A text that the Format menu changes: as it is, as it shall be.
fn ed_case(rng: &mut Rng64, case: fn(&str) -> String, word: &str) -> Draft {
    let mut draft = compact::app(rng, "ed_save");
    let mut windows = draft.desktop.windows().to_vec();
    if let App::Editor(editor) = &mut windows[0].app {
        if case("a") == "a" {
            for glyph in &mut editor.glyphs {
                glyph.ch = glyph.ch.to_ascii_uppercase();
            }
        }
        let text = case(&editor.text());
        draft.goal = vec![("/editor/text".to_owned(), json!(text))];
    }
    draft.desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows);
    draft.instruction = format!("Put the text of the Editor into {word} case");
    draft
}

pub(super) fn ed_upper(rng: &mut Rng64) -> Draft {
    ed_case(rng, str::to_ascii_uppercase, "upper")
}

pub(super) fn ed_lower(rng: &mut Rng64) -> Draft {
    ed_case(rng, str::to_ascii_lowercase, "lower")
}

/// Three windows and a goal about one of them.
fn wi_draft(
    rng: &mut Rng64,
    instruction: impl Fn(&str) -> String,
    goal: impl Fn(&Window) -> (String, Value),
) -> Draft {
    let mut windows: Vec<Window> = sample(rng, &OTHERS, 3)
        .into_iter()
        .map(|make| make(rng))
        .collect();
    for window in &mut windows {
        place(rng, window);
    }
    let goal = goal(&windows[0]);
    let name = windows[0].app.name();
    let desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows);
    let mut draft = Draft::new(desktop, instruction(name), vec![goal]);
    draft.tidy = true;
    draft
}

pub(super) fn wi_close(rng: &mut Rng64) -> Draft {
    wi_draft(
        rng,
        |name| format!("Close the {name} window"),
        |window| ("/desk/closed".to_owned(), json!([window.key])),
    )
}

pub(super) fn wi_minimize(rng: &mut Rng64) -> Draft {
    wi_draft(
        rng,
        |name| format!("Minimize the {name} window"),
        |window| ("/desk/minimized".to_owned(), json!([window.key])),
    )
}

pub(super) fn wi_front(rng: &mut Rng64) -> Draft {
    wi_draft(
        rng,
        |name| format!("Bring the {name} window to the front"),
        |window| ("/desk/front".to_owned(), json!(window.key)),
    )
}

pub(super) fn wi_left(rng: &mut Rng64) -> Draft {
    let mut draft = wi_draft(
        rng,
        |name| format!("Move the {name} window to the left half of the screen"),
        |window| (format!("/desk/side/{}", window.key), json!("left")),
    );
    let mut windows = draft.desktop.windows().to_vec();
    let (columns, _) = windows[0].app.size();
    windows[0].x = (SIZE_PX.0 / CELL_PX - columns) * CELL_PX;
    draft.desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows);
    draft
}

pub(super) fn wi_reopen(rng: &mut Rng64) -> Draft {
    let mut draft = wi_draft(
        rng,
        |name| format!("Open the {name} window again"),
        |_| ("/desk/closed".to_owned(), json!([])),
    );
    let mut windows = draft.desktop.windows().to_vec();
    windows[0].placement = Placement::Closed;
    draft.desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows);
    draft
}

pub(super) fn mu_form(rng: &mut Rng64) -> Draft {
    let editor = compact::app(rng, "ed_save");
    let mut form = compact::app(rng, "fo_fill");
    let text = editor.desktop.state()["editor"]["text"].clone();
    let field = form.goal[0].0.clone();
    form.goal = vec![(field.clone(), text)];
    let label = field.rsplit('/').next().unwrap_or("");
    let windows = [&editor, &form].map(|draft| draft.desktop.windows().to_vec());
    let desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows.concat());
    let instruction = format!("Copy the text of the Editor into the field {label} of the Form");
    Draft::new(desktop, instruction, form.goal)
}

pub(super) fn mu_switch(rng: &mut Rng64) -> Draft {
    both(compact::app(rng, "se_one"), compact::app(rng, "ra_apply"))
}

pub(super) fn mu_sheet(rng: &mut Rng64) -> Draft {
    both(ma_star(rng), sh_sum(rng))
}

pub(super) fn mu_day(rng: &mut Rng64) -> Draft {
    both(pl_play(rng), cl_add(rng))
}

pub(super) fn mu_format(rng: &mut Rng64) -> Draft {
    both(compact::app(rng, "ed_all"), ma_archive(rng))
}
