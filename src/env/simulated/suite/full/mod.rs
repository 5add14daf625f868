//! The full suite: several overlapping windows with menus and a task bar on a large screen.
//! Nothing is trained on it; it is for rehearsals and for policies larger than the shipped one.
//!
//! Its families are those of the compact suite, each put among other windows, and those of the
//! applications, windows and combinations that only this desktop has.

mod desk;
mod office;

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

use super::draft::Draft;
use super::{Family, compact, family, infeasible};
use crate::env::simulated::app::{App, Calculator};
use crate::env::simulated::desktop::{Desktop, Placement, Window};
use crate::env::simulated::theme::Theme;
use crate::env::simulated::widget::CELL_PX;
use crate::types::ScreenSize;

use desk::{
    ed_lower, ed_upper, mu_day, mu_form, mu_format, mu_sheet, mu_switch, pl_bad, pl_both, pl_pause,
    pl_play, pl_volume, player, te_make, te_move, te_remove, te_touch, wi_close, wi_front, wi_left,
    wi_minimize, wi_reopen,
};
use office::{
    ca_add, ca_long, ca_minus, ca_times, cl_add, cl_month, cl_next, cl_remove, ma_archive, ma_bad,
    ma_delete, ma_read, ma_reply, ma_star, ma_two, ma_unstar, mail, sh_bad, sh_change, sh_clear,
    sh_copy, sh_sum, sh_two, sh_write, sheet,
};

/// Screen in logical pixels.
const SIZE_PX: (i32, i32) = (640, 360);
/// Screen pixels of a logical pixel: 1920x1080.
const SCALE: u32 = 3;
/// Screen in pixels.
pub(super) const SCREEN: ScreenSize = ScreenSize {
    width: SIZE_PX.0 as u32 * SCALE,
    height: SIZE_PX.1 as u32 * SCALE,
};
/// Most windows that have nothing to do with the task.
const MAX_OTHERS: usize = 3;

/// Families that only this suite has.
const OWN: [Family; 44] = [
    family("ca_add", "calculator", 5, ca_add),
    family("ca_minus", "calculator", 6, ca_minus),
    family("ca_times", "calculator", 5, ca_times),
    family("ca_long", "calculator", 9, ca_long),
    family("ma_read", "mail", 2, ma_read),
    family("ma_star", "mail", 2, ma_star),
    family("ma_unstar", "mail", 2, ma_unstar),
    family("ma_archive", "mail", 3, ma_archive),
    family("ma_delete", "mail", 3, ma_delete),
    family("ma_reply", "mail", 5, ma_reply),
    family("ma_two", "mail", 5, ma_two),
    infeasible("ma_bad", "mail", ma_bad),
    family("sh_write", "sheet", 3, sh_write),
    family("sh_change", "sheet", 3, sh_change),
    family("sh_clear", "sheet", 3, sh_clear),
    family("sh_sum", "sheet", 4, sh_sum),
    family("sh_two", "sheet", 5, sh_two),
    family("sh_copy", "sheet", 3, sh_copy),
    infeasible("sh_bad", "sheet", sh_bad),
    family("cl_month", "calendar", 2, cl_month),
    family("cl_add", "calendar", 4, cl_add),
    family("cl_next", "calendar", 5, cl_next),
    family("cl_remove", "calendar", 3, cl_remove),
    family("pl_play", "player", 2, pl_play),
    family("pl_pause", "player", 2, pl_pause),
    family("pl_volume", "player", 4, pl_volume),
    family("pl_both", "player", 4, pl_both),
    infeasible("pl_bad", "player", pl_bad),
    family("te_make", "terminal", 3, te_make),
    family("te_touch", "terminal", 3, te_touch),
    family("te_remove", "terminal", 3, te_remove),
    family("te_move", "terminal", 3, te_move),
    family("ed_upper", "editor", 3, ed_upper),
    family("ed_lower", "editor", 3, ed_lower),
    family("wi_close", "desk", 2, wi_close),
    family("wi_minimize", "desk", 2, wi_minimize),
    family("wi_front", "desk", 1, wi_front),
    family("wi_left", "desk", 2, wi_left),
    family("wi_reopen", "desk", 1, wi_reopen),
    family("mu_form", "multi_apps", 5, mu_form),
    family("mu_switch", "multi_apps", 5, mu_switch),
    family("mu_sheet", "multi_apps", 7, mu_sheet),
    family("mu_day", "multi_apps", 7, mu_day),
    family("mu_format", "multi_apps", 6, mu_format),
];

/// Number of families.
const COUNT: usize = compact::FAMILIES.len() + OWN.len();

/// All families.
pub(super) const FAMILIES: [Family; COUNT] = all_families();

type Rng64 = Pcg64Mcg;

const fn all_families() -> [Family; COUNT] {
    let mut all = [OWN[0]; COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = if i < compact::FAMILIES.len() {
            among_windows(compact::FAMILIES[i])
        } else {
            among_windows(OWN[i - compact::FAMILIES.len()])
        };
        i += 1;
    }
    all
}

/// A family on this desktop: its window may have to be shown first.
const fn among_windows(family: Family) -> Family {
    Family {
        steps: if family.infeasible {
            1
        } else {
            family.steps + 1
        },
        trained: false,
        ..family
    }
}

/// Puts a task's windows among others on the large screen.
pub(super) fn furnish(rng: &mut Rng64, draft: Draft) -> Draft {
    let mut windows = draft.desktop.windows().to_vec();
    let own: Vec<String> = windows.iter().map(|window| window.key.clone()).collect();
    let mut others = OTHERS.to_vec();
    others.shuffle(rng);
    for make in others.into_iter().take(rng.random_range(1..=MAX_OTHERS)) {
        let other = make(rng);
        if windows.iter().all(|window| window.key != other.key) {
            windows.push(other);
        }
    }
    if draft.tidy {
        let (mine, rest): (Vec<Window>, Vec<Window>) = windows
            .into_iter()
            .partition(|window| own.contains(&window.key));
        windows = mine.into_iter().chain(rest).collect();
    } else {
        windows.shuffle(rng);
    }
    for window in &mut windows {
        let mine = own.contains(&window.key);
        if !draft.tidy || !mine {
            place(rng, window);
        }
        if !draft.tidy && rng.random_bool(0.12) {
            window.placement = Placement::Minimized;
        }
    }
    let theme = *pick(rng, &Theme::ALL);
    Draft {
        desktop: Desktop::new(SIZE_PX, SCALE, theme, windows).with_shell(),
        ..draft
    }
}

/// Puts a window somewhere on the screen, above the task bar.
fn place(rng: &mut Rng64, window: &mut Window) {
    let (columns, rows) = window.app.size();
    let free = (
        SIZE_PX.0 / CELL_PX - columns - 1,
        SIZE_PX.1 / CELL_PX - rows - 3,
    );
    window.x = rng.random_range(1..=free.0.max(1)) * CELL_PX;
    window.y = rng.random_range(0..=free.1.max(0)) * CELL_PX;
}

/// Windows that stand beside a task's own.
const OTHERS: [fn(&mut Rng64) -> Window; 8] = [
    |rng| sole_window(&compact::app(rng, "ed_save")),
    |rng| sole_window(&compact::app(rng, "se_one")),
    |rng| sole_window(&compact::app(rng, "fi_open")),
    |rng| sole_window(&compact::app(rng, "fo_send")),
    |rng| window("mail", App::Mail(mail(rng))),
    |rng| window("sheet", App::Sheet(sheet(rng))),
    |rng| window("player", App::Player(player(rng))),
    |_| window("calculator", App::Calculator(Calculator::default())),
];

fn sole_window(draft: &Draft) -> Window {
    draft.desktop.windows()[0].clone()
}

fn window(key: &str, app: App) -> Window {
    Window {
        key: key.to_owned(),
        x: CELL_PX,
        y: 0,
        placement: Placement::Shown,
        app,
    }
}

fn pick<'a, T>(rng: &mut Rng64, from: &'a [T]) -> &'a T {
    from.choose(rng).expect("lists of words are not empty")
}

fn sample<T: Clone>(rng: &mut Rng64, from: &[T], count: usize) -> Vec<T> {
    let mut all = from.to_vec();
    all.shuffle(rng);
    all.truncate(count);
    all
}

/// A task in one window, yet without its surroundings.
fn draft(key: &str, app: App, instruction: String, goal: Vec<(String, Value)>) -> Draft {
    let windows = vec![window(key, app)];
    let desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows);
    Draft::new(desktop, instruction, goal)
}

/// Two tasks in one: first this, then that. Their windows must be different ones.
fn both(first: Draft, second: Draft) -> Draft {
    let windows = [&first, &second].map(|draft| draft.desktop.windows().to_vec());
    let desktop = Desktop::new(SIZE_PX, SCALE, Theme::Light, windows.concat());
    let mut rest = second.instruction;
    if let Some(start) = rest.get_mut(0..1) {
        start.make_ascii_lowercase();
    }
    let instruction = format!("{}, then {rest}", first.instruction);
    let goal = first.goal.into_iter().chain(second.goal).collect();
    Draft::new(desktop, instruction, goal).in_parts()
}
