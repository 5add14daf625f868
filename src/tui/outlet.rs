//! Where text goes that leaves the console: the terminal's clipboard, files, the operator's pager
//! and editor.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::tui::theme::Role;

/// Terminals take this much base64 in one OSC 52, and some drop more without a word.
const CLIPBOARD_MAX: usize = 74_994;

/// A program of the operator's that shows text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// `$PAGER`.
    Pager,
    /// `$VISUAL` or `$EDITOR`.
    Editor,
}

impl Reader {
    /// Its command line: the first variable that is set, else what every machine has.
    fn command(self, lookup: impl Fn(&str) -> Option<String>) -> String {
        let (names, default): (&[&str], &str) = match self {
            Reader::Pager => (&["PAGER"], "less"),
            Reader::Editor => (&["VISUAL", "EDITOR"], "vi"),
        };
        let set = names.iter().find_map(|name| lookup(name));
        set.filter(|command| !command.trim().is_empty())
            .unwrap_or_else(|| default.to_owned())
    }
}

/// The escape sequence that puts text into the terminal's clipboard; nothing if it is too long.
pub fn clipboard(text: &str) -> Option<String> {
    let encoded = STANDARD.encode(text);
    (encoded.len() <= CLIPBOARD_MAX).then(|| format!("\x1b]52;c;{encoded}\x07"))
}

/// Where the console keeps what it writes, given the environment.
fn state_dir(lookup: impl Fn(&str) -> Option<String>) -> io::Result<PathBuf> {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let state = match (set("XDG_STATE_HOME"), set("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(&home).join(".local/state"),
        (None, None) => {
            let message = "neither XDG_STATE_HOME nor HOME is set";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
    };
    Ok(state.join("arpo"))
}

/// Writes a file: at `path`, or under this name where the console keeps its own.
pub fn write(path: Option<&Path>, name: &str, text: &str) -> io::Result<PathBuf> {
    let path = if let Some(path) = path {
        path.to_owned()
    } else {
        let folder = state_dir(|name| std::env::var(name).ok())?;
        fs::create_dir_all(&folder)?;
        folder.join(name)
    };
    fs::write(&path, text)?;
    Ok(path)
}

/// Opens a file in the operator's program and waits for its end; the terminal must have been
/// given back.
pub fn open(path: &Path, with: Reader) -> io::Result<()> {
    let command = with.command(|name| std::env::var(name).ok());
    // As git does: the variable is a command line, not a path.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{command} \"$@\""))
        .arg(&command)
        .arg(path)
        .stdin(Stdio::inherit())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("{command}: {status}")))
    }
}

/// What the operator is told about copied text: whether the clipboard took it, and where the file
/// is.
pub(super) fn copied(
    what: &str,
    is_in_clipboard: bool,
    written: io::Result<PathBuf>,
) -> (Role, String) {
    match (is_in_clipboard, written) {
        (true, Ok(path)) => (
            Role::Muted,
            format!("{what} copied; also in {}", path.display()),
        ),
        (false, Ok(path)) => (
            Role::Warning,
            format!(
                "too long for the clipboard; the {what} is in {}",
                path.display()
            ),
        ),
        (true, Err(error)) => (
            Role::Warning,
            format!("{what} copied, but no file: {error}"),
        ),
        (false, Err(error)) => (
            Role::Danger,
            format!("too long for the clipboard, and no file: {error}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{CLIPBOARD_MAX, Reader, clipboard, state_dir, write};

    #[test]
    fn the_clipboard_takes_what_terminals_take() {
        assert_eq!(clipboard("上 a").unwrap(), "\x1b]52;c;5LiKIGE=\x07");
        let most = CLIPBOARD_MAX / 4 * 3;
        assert!(clipboard(&"x".repeat(most)).is_some());
        assert!(clipboard(&"x".repeat(most + 3)).is_none());
    }

    #[test]
    fn files_lie_where_the_environment_says() {
        let folder = |vars: &[(&str, &str)]| {
            state_dir(|name| {
                let known = vars.iter().find(|(key, _)| *key == name);
                known.map(|(_, value)| (*value).to_owned())
            })
        };
        let own = folder(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]).unwrap();
        assert_eq!(own, Path::new("/s/arpo"));
        let home = folder(&[("HOME", "/h")]).unwrap();
        assert_eq!(home, Path::new("/h/.local/state/arpo"));
        assert!(folder(&[]).is_err());
    }

    #[test]
    fn readers_are_command_lines() {
        let set = |wanted: &'static str, line: &'static str| {
            move |name: &str| (name == wanted).then(|| line.to_owned())
        };
        assert_eq!(Reader::Pager.command(set("PAGER", "less -R")), "less -R");
        assert_eq!(Reader::Editor.command(set("EDITOR", "ed")), "ed");
        assert_eq!(Reader::Editor.command(|_| None), "vi");
        assert_eq!(Reader::Pager.command(set("PAGER", " ")), "less");
    }

    #[test]
    fn text_is_written_and_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b.txt");
        assert_eq!(write(Some(&path), "", "text").unwrap(), path);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
        assert!(write(Some(folder.path()), "", "text").is_err());
        let missing = folder.path().join("none/x");
        assert!(write(Some(&missing), "", "").is_err());
    }
}
