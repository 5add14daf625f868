//! What keys mean: the defaults of the table of commands, changed by the operator's own file.

use crate::tui::app::Screen;
use crate::tui::commands::{COMMANDS, CommandRow, Scope};
use crate::tui::keys::{Key, chord_name, parse_chord};

/// Keys pressed in a row, and the command they stand for.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The keys.
    pub chord: Vec<Key>,
    /// Where they hold.
    pub scope: Scope,
    /// The command.
    pub row: &'static CommandRow,
    /// Its argument.
    pub argument: String,
    /// Whether the operator's file says so, not the table.
    pub is_own: bool,
}

/// All bindings.
#[derive(Clone, Debug)]
pub struct Keymap {
    bindings: Vec<Binding>,
}

/// What keys pressed in a row mean.
pub enum Meaning<'a> {
    /// A command.
    Command(&'a Binding),
    /// The beginning of one.
    Prefix,
    /// Nothing.
    Nothing,
}

impl Default for Keymap {
    fn default() -> Self {
        let mut bindings = Vec::new();
        for row in COMMANDS {
            // The table's keys are tested; one that does not read has no meaning.
            let chords = row.keys.iter().filter_map(|name| parse_chord(name).ok());
            bindings.extend(chords.map(|chord| Binding {
                chord,
                scope: row.scope,
                row,
                argument: String::new(),
                is_own: false,
            }));
        }
        Self { bindings }
    }
}

impl Keymap {
    /// What `keys` mean where `scopes` hold, the nearest first.
    pub fn meaning(&self, keys: &[Key], scopes: &[Scope]) -> Meaning<'_> {
        for scope in scopes {
            let mut own = self.bindings.iter().filter(|b| b.scope == *scope);
            if let Some(exact) = own.clone().find(|b| b.chord == keys) {
                return Meaning::Command(exact);
            }
            if own.any(|b| b.chord.starts_with(keys)) {
                return Meaning::Prefix;
            }
        }
        Meaning::Nothing
    }

    /// What may follow `keys`: the rest of each chord, and its binding.
    pub fn ahead(&self, keys: &[Key], scopes: &[Scope]) -> Vec<(String, &Binding)> {
        let mut found: Vec<(String, &Binding)> = Vec::new();
        for scope in scopes {
            for binding in self.bindings.iter().filter(|b| b.scope == *scope) {
                let rest = binding.chord.strip_prefix(keys);
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    let name = chord_name(rest);
                    if found.iter().all(|(known, _)| *known != name) {
                        found.push((name, binding));
                    }
                }
            }
        }
        found
    }

    /// The keys of a command as they are written, the one to show first.
    pub fn keys_of(&self, row: &CommandRow) -> Vec<String> {
        let mut own: Vec<_> = self
            .bindings
            .iter()
            .filter(|b| b.row.name == row.name && b.argument.is_empty())
            .collect();
        own.sort_by_key(|binding| !binding.is_own);
        own.into_iter().map(|b| chord_name(&b.chord)).collect()
    }

    /// Frees a chord wherever it means something.
    pub(super) fn unbind(&mut self, chord: &[Key]) {
        self.bindings.retain(|binding| binding.chord != chord);
    }

    /// Gives a chord another meaning where its command holds.
    pub(super) fn bind(&mut self, binding: Binding) {
        self.bindings
            .retain(|old| old.chord != binding.chord || old.scope != binding.scope);
        self.bindings.push(binding);
    }

    /// Bindings that hold beside one and begin as it does, or as it begins.
    pub(super) fn overlaps(&self, one: &Binding) -> Vec<&Binding> {
        let is_longer = |a: &Binding, b: &Binding| {
            a.chord.len() > b.chord.len() && a.chord.starts_with(&b.chord)
        };
        self.bindings
            .iter()
            .filter(|other| hold_together(one.scope, other.scope))
            .filter(|other| is_longer(other, one) || is_longer(one, other))
            .collect()
    }

    /// What the operator's keys took from the defaults, and where they do not hold.
    pub fn conflicts(&self) -> Vec<String> {
        let mut all = Vec::new();
        for own in self.bindings.iter().filter(|binding| binding.is_own) {
            let (name, command) = (chord_name(&own.chord), own.row.name);
            for lost in Self::default().bindings {
                if lost.chord == own.chord && lost.scope == own.scope && lost.row.name != command {
                    all.push(format!(
                        "{name} is {command}, not {} as by default",
                        lost.row.name
                    ));
                }
            }
            for nearer in &self.bindings {
                let is_nearer = own.scope == Scope::Global && nearer.scope != Scope::Global;
                if is_nearer && nearer.chord == own.chord {
                    let place = scope_name(nearer.scope);
                    all.push(format!(
                        "{name} is {command}, but {} {place}",
                        nearer.row.name
                    ));
                }
            }
        }
        all
    }

    /// All bindings, in the order of the table.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }
}

/// Where keys hold, in words.
pub fn scope_name(scope: Scope) -> String {
    match scope {
        Scope::Global => "everywhere".to_owned(),
        Scope::On(screen) => format!("on {}", screen.title()),
        Scope::Detail(screen) => format!("in the detail of {}", screen.title()),
        Scope::Held => "on a held episode".to_owned(),
    }
}

/// Whether keys of both scopes can hold at a time.
fn hold_together(a: Scope, b: Scope) -> bool {
    let screen = |scope| match scope {
        Scope::Global => None,
        Scope::On(screen) | Scope::Detail(screen) => Some(screen),
        Scope::Held => Some(Screen::Rollout),
    };
    match (screen(a), screen(b)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}
