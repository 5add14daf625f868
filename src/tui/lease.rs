//! The lease as the console shows it: who writes, who asks, what to answer.

use crossterm::event::KeyCode;

use crate::bus::{LeaseRequest, LeaseState};
use crate::tui::app::App;
use crate::tui::figures;
use crate::tui::keys::Key;
use crate::tui::text::one_line;
use crate::tui::theme::Role;

/// How the lease stood when it was last told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// What was told.
    pub state: LeaseState,
    /// When, by the console's clock.
    pub at_ms: u64,
}

/// Takes news of the lease in.
pub fn note(app: &mut App, state: LeaseState) {
    let before = app.ui.lease.take().map(|view| view.state);
    let at_ms = app.ui.now_ms;
    let name = |state: &LeaseState| one_line(state.holder.as_deref().unwrap_or("nobody"));
    if let Some(before) = before {
        if state.refused > before.refused {
            app.say(Role::Warning, format!("{} keeps the lease", name(&state)));
        } else if state.yours && !before.yours {
            app.say(Role::Good, "you write on this run now");
        } else if before.yours && !state.yours {
            let text = format!("{} writes now; :take asks for it back", name(&state));
            app.say(Role::Warning, text);
        }
    }
    app.ui.lease = Some(LeaseView { state, at_ms });
}

/// Whether another console writes.
pub fn is_elsewhere(app: &App) -> bool {
    app.ui
        .lease
        .as_ref()
        .is_some_and(|lease| !lease.state.yours)
}

/// What the header says: `rw:you`, `ro (rw: li@laptop, 3m)`.
pub fn header(app: &App) -> Option<(String, Role)> {
    let LeaseView { state, at_ms } = app.ui.lease.as_ref()?;
    if state.yours {
        return Some(("rw:you".to_owned(), Role::Good));
    }
    let held_ms = state.held_ms + app.ui.now_ms.saturating_sub(*at_ms);
    let text = match &state.holder {
        Some(holder) => format!("ro (rw: {}, {})", one_line(holder), figures::age(held_ms)),
        None => "ro (rw: nobody)".to_owned(),
    };
    Some((text, Role::Warning))
}

/// Who asks this console for the lease, and how long it may still answer, ms.
pub fn asked(app: &App) -> Option<(&str, u64)> {
    let LeaseView { state, at_ms } = app.ui.lease.as_ref()?;
    let asker = state.asked_by.as_deref().filter(|_| state.yours)?;
    let waited = app.ui.now_ms.saturating_sub(*at_ms);
    Some((asker, state.answer_ms.saturating_sub(waited)))
}

/// What the row of messages says of it, before anything else.
pub fn question(app: &App) -> Option<String> {
    if let Some((asker, left_ms)) = asked(app) {
        let seconds = left_ms.div_ceil(1_000);
        return Some(format!(
            "{} asks to write: y gives it, n keeps it, silence gives it in {seconds}s",
            one_line(asker)
        ));
    }
    let LeaseView { state, at_ms } = app.ui.lease.as_ref()?;
    let left_ms = state
        .answer_ms
        .saturating_sub(app.ui.now_ms.saturating_sub(*at_ms));
    state.asked_by_you.then(|| {
        format!(
            "asked {}: silence gives it in {}s",
            one_line(state.holder.as_deref().unwrap_or("nobody")),
            left_ms.div_ceil(1_000)
        )
    })
}

/// What keys do about the lease now, with a word each.
pub fn hints(app: &App) -> &'static [(&'static str, &'static str)] {
    if asked(app).is_some() {
        &[("y", "give"), ("n", "keep")]
    } else if is_elsewhere(app) {
        &[(":take", "write")]
    } else {
        &[]
    }
}

/// What a key answers while somebody asks; nothing if it is for something else.
pub fn answer(app: &App, key: Key) -> Option<LeaseRequest> {
    asked(app)?;
    match key.code {
        KeyCode::Char('y') if !key.ctrl && !key.alt => Some(LeaseRequest::Grant),
        KeyCode::Char('n') if !key.ctrl && !key.alt => Some(LeaseRequest::Refuse),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::bus::{LeaseRequest, LeaseState};
    use crate::event::{Command, RunState};
    use crate::tui::app::{App, Link};
    use crate::tui::theme::{ColorDepth, Theme};
    use crate::tui::update::{Effect, Input, update};

    fn app() -> App {
        let theme = Theme::built_in("default", ColorDepth::None).unwrap();
        App::new(RunState::default(), "test", Link::Live, theme)
    }

    fn press(app: &mut App, keys: &str) -> Vec<Effect> {
        let one = |name: &str| Input::Key(name.parse().unwrap());
        keys.split(' ')
            .flat_map(|name| update(app, one(name)).effects)
            .collect()
    }

    fn held_by(name: &str, yours: bool) -> LeaseState {
        LeaseState {
            yours,
            holder: Some(name.to_owned()),
            held_ms: 180_000,
            ..LeaseState::default()
        }
    }

    #[test]
    fn who_watches_asks_first() {
        let mut app = app();
        update(&mut app, Input::Lease(held_by("li@laptop", false)));
        assert_eq!(super::header(&app).unwrap().0, "ro (rw: li@laptop, 3m)");
        assert!(press(&mut app, "r").is_empty());
        let said = &app.ui.message.as_ref().unwrap().text;
        assert!(said.contains(":take"), "{said}");
        let asked = press(&mut app, ": t a k e enter");
        assert_eq!(asked, [Effect::Lease(LeaseRequest::Take)]);
        let refused = LeaseState {
            refused: 1,
            ..held_by("li@laptop", false)
        };
        update(&mut app, Input::Lease(refused));
        let said = &app.ui.message.as_ref().unwrap().text;
        assert_eq!(said, "li@laptop keeps the lease");
        update(&mut app, Input::Lease(held_by("me", true)));
        assert_eq!(super::header(&app).unwrap().0, "rw:you");
        assert_eq!(press(&mut app, "r"), [Effect::Send(0, Command::Resume)]);
    }

    #[test]
    fn who_holds_answers_with_one_key_unless_text_is_typed() {
        let mut app = app();
        let asked = LeaseState {
            asked_by: Some("li@laptop".to_owned()),
            answer_ms: 10_000,
            ..held_by("me", true)
        };
        update(&mut app, Input::Lease(asked));
        update(&mut app, Input::Clock(2_500));
        let question = super::question(&app).unwrap();
        assert!(question.ends_with("in 8s"), "{question}");
        assert!(press(&mut app, ": y esc").is_empty());
        assert_eq!(press(&mut app, "n"), [Effect::Lease(LeaseRequest::Refuse)]);
        assert_eq!(press(&mut app, "y"), [Effect::Lease(LeaseRequest::Grant)]);
        // Other keys go where they always go.
        assert_eq!(press(&mut app, "r"), [Effect::Send(0, Command::Resume)]);
    }
}
