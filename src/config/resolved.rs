//! The profile in force: base, overlays and `--set` merged, checked, with the origin of every
//! value.
//!
//! Invariant: the leaves are those of `profiles/base.toml`, in its order, whatever was laid
//! over them; `profile` says the same as the leaves.

use std::fmt::Write as _;
use std::path::Path;

use crate::config::source::{self, BASE_NAME, Leaf, Origin, Source, ValueKind};
use crate::config::{ConfigError, Profile, assets, plan};

const BASE: &str = include_str!("../../profiles/base.toml");

/// A checked profile that knows where its values came from.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The values.
    pub profile: Profile,
    leaves: Vec<Leaf>,
}

impl Resolved {
    /// Merges `-p` and `--set` over the base and checks the result. `overlays` are files, or names
    /// of profiles that come with arpo; `sets` are `section.key=value`.
    pub fn load<S: AsRef<str>>(overlays: &[S], sets: &[S]) -> Result<Self, ConfigError> {
        let mut leaves = base_leaves();
        for name in overlays {
            let path = assets::find_profile(name.as_ref())?;
            lay_over(&mut leaves, read(&path)?)?;
        }
        apply_sets(&mut leaves, sets)?;
        Self::from_leaves(leaves)
    }

    /// Reads a profile that `to_toml` wrote, say into a run's folder, and lays `sets` over it.
    /// Nothing is taken from the base: a key that is missing is an error.
    pub fn load_saved<S: AsRef<str>>(path: &Path, sets: &[S]) -> Result<Self, ConfigError> {
        let source = read(path)?;
        let mut leaves = base_leaves();
        let missing = leaves
            .iter()
            .find(|leaf| source.leaves.iter().all(|own| own.key != leaf.key));
        if let Some(leaf) = missing {
            return Err(ConfigError::MissingKey {
                path: path.to_owned(),
                key: leaf.key.clone(),
            });
        }
        lay_over(&mut leaves, source)?;
        apply_sets(&mut leaves, sets)?;
        Self::from_leaves(leaves)
    }

    /// Every value, in the order of the base.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Where the value of `key` came from, if there is such a key.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.leaves
            .iter()
            .find(|leaf| leaf.key == key)
            .map(|leaf| &leaf.origin)
    }

    /// The whole profile as TOML, each line with its origin as a comment.
    pub fn to_toml(&self) -> String {
        render(&self.leaves, true)
    }

    fn from_leaves(leaves: Vec<Leaf>) -> Result<Self, ConfigError> {
        let profile = deserialize(&leaves)?;
        let resolved = Self { profile, leaves };
        let problems = plan::check(&resolved.profile);
        if problems.is_empty() {
            return Ok(resolved);
        }
        let at = |key: &str| {
            resolved
                .origin(key)
                .map_or_else(String::new, Origin::to_string)
        };
        let problems = problems
            .into_iter()
            .map(|problem| {
                let at = at(&problem.key);
                (problem, at)
            })
            .collect();
        Err(ConfigError::Invalid { problems })
    }
}

fn base_leaves() -> Vec<Leaf> {
    source::parse(BASE_NAME, BASE)
        .expect("a test reads the base that is compiled in")
        .leaves
}

fn read(path: &Path) -> Result<Source, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    source::parse(&path.display().to_string(), &text)
}

fn apply_sets<S: AsRef<str>>(leaves: &mut [Leaf], sets: &[S]) -> Result<(), ConfigError> {
    for argument in sets.iter().map(AsRef::as_ref) {
        let (key, value) = argument
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .filter(|(key, value)| !key.is_empty() && !value.is_empty())
            .ok_or_else(|| ConfigError::SetSyntax {
                argument: argument.to_owned(),
            })?;
        let at = || format!("--set {argument}");
        let target = find(leaves, key, &at)?;
        let leaf = source::parse_set(key, value, target.kind)?;
        replace(target, leaf, at())?;
    }
    Ok(())
}

/// Tables merge key by key, all else is replaced.
fn lay_over(leaves: &mut [Leaf], over: Source) -> Result<(), ConfigError> {
    for (section, origin) in over.sections {
        let inside = format!("{section}.");
        if leaves.iter().all(|leaf| !leaf.key.starts_with(&inside)) {
            // A value's name used as a section is a different mistake from an unknown one.
            let at = || origin.to_string();
            let leaf = find(leaves, &section, &at)?;
            let (expected, found) = (leaf.kind.words(), "a section");
            return Err(ConfigError::WrongType {
                at: at(),
                key: section,
                expected,
                found,
            });
        }
    }
    for leaf in over.leaves {
        let at = leaf.origin.to_string();
        let target = find(leaves, &leaf.key, &|| at.clone())?;
        replace(target, leaf, at)?;
    }
    Ok(())
}

fn find<'a>(
    leaves: &'a mut [Leaf],
    key: &str,
    at: &dyn Fn() -> String,
) -> Result<&'a mut Leaf, ConfigError> {
    match leaves.iter().position(|leaf| leaf.key == key) {
        Some(index) => Ok(&mut leaves[index]),
        None => Err(unknown_key(leaves, key, at())),
    }
}

fn unknown_key(leaves: &[Leaf], key: &str, at: String) -> ConfigError {
    let inside = format!("{key}.");
    let key = key.to_owned();
    if leaves.iter().any(|leaf| leaf.key.starts_with(&inside)) {
        return ConfigError::WrongType {
            at,
            key,
            expected: "a section",
            found: "a value",
        };
    }
    let near = nearest_keys(leaves, &key);
    let hint = match near.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    };
    ConfigError::UnknownKey { at, key, hint }
}

/// The keys most like `wanted`: those of the same name in other sections, else the one with the
/// fewest letters wrong, unless that is unlike too.
fn nearest_keys<'a>(leaves: &'a [Leaf], wanted: &str) -> Vec<&'a str> {
    // Three letters of five right: a suggestion below that only puzzles.
    const LEAST_LIKENESS: f64 = 0.6;
    let name = wanted.rsplit('.').next().unwrap_or(wanted);
    let keys = leaves.iter().map(|leaf| leaf.key.as_str());
    let same_name: Vec<&str> = keys
        .clone()
        .filter(|key| key.rsplit('.').next() == Some(name))
        .collect();
    if !same_name.is_empty() {
        return same_name;
    }
    keys.map(|key| (strsim::normalized_damerau_levenshtein(key, wanted), key))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, key)| key)
        .into_iter()
        .collect()
}

fn replace(target: &mut Leaf, mut leaf: Leaf, at: String) -> Result<(), ConfigError> {
    if target.kind == ValueKind::Float && leaf.kind == ValueKind::Integer {
        leaf.text.push_str(".0");
        leaf.kind = ValueKind::Float;
    }
    if target.kind != leaf.kind {
        let (expected, found) = (target.kind.words(), leaf.kind.words());
        return Err(ConfigError::WrongType {
            at,
            key: leaf.key,
            expected,
            found,
        });
    }
    if leaf.kind == ValueKind::Float && leaf.text.ends_with(['n', 'f']) {
        let message = "must be finite".to_owned();
        return Err(ConfigError::BadValue {
            at,
            key: leaf.key,
            value: leaf.text,
            message,
        });
    }
    *target = leaf;
    Ok(())
}

/// One leaf a line, so that a line number of the text leads to the leaf.
fn render(leaves: &[Leaf], with_origin: bool) -> String {
    let mut out = String::new();
    let mut section = "";
    for leaf in leaves {
        let (own_section, name) = leaf.key.rsplit_once('.').unwrap_or(("", &leaf.key));
        if own_section != section {
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}[{own_section}]");
            section = own_section;
        }
        let line = format!("{name} = {}", leaf.text);
        let _ = if with_origin {
            writeln!(out, "{line:40} # {}", leaf.origin)
        } else {
            writeln!(out, "{line}")
        };
    }
    out
}

fn deserialize(leaves: &[Leaf]) -> Result<Profile, ConfigError> {
    let text = render(leaves, false);
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .and_then(|span| leaf_at(leaves, &text, span.start));
        let message = error.message().replace('\n', " ");
        match line {
            Some(leaf) => ConfigError::BadValue {
                at: leaf.origin.to_string(),
                key: leaf.key.clone(),
                value: leaf.text.clone(),
                message,
            },
            None => ConfigError::Syntax {
                at: BASE_NAME.to_owned(),
                message,
            },
        }
    })
}

/// The leaf whose line of `text` (as `render` made it) holds the byte `offset`.
fn leaf_at<'a>(leaves: &'a [Leaf], text: &str, offset: usize) -> Option<&'a Leaf> {
    let is_leaf = |line: &&str| !line.is_empty() && !line.starts_with('[');
    let before = text[..offset].lines().count();
    let through = text.lines().take(before.max(1)).filter(is_leaf).count();
    leaves.get(through.checked_sub(1)?)
}
