//! Reads what OSWorld's controllers send for an action: a few lines of Python that call pyautogui
//! with literals. What is understood to its last character is done without Python; anything else is
//! none of ours, and run for real.
//!
//! Source: `desktop_env/controllers/python.py` of desktop-env 1.0.2 for what is sent, pyautogui
//! 0.9.54 for what the calls mean. Departs: typed text is what it says (pyautogui gives `>` for `<`
//! and nothing for what is not on the keyboard), and slow moves go straight and even.

mod call;
mod read;

use super::input::Gesture;

/// What OSWorld's controllers put before whatever they want done.
const PREFIX: &str = "import pyautogui; import time; pyautogui.FAILSAFE = False; ";

/// A command that is run for real, without an import that it does not use: pyautogui may not be
/// there.
pub(super) fn without_prefix(mut argv: Vec<String>) -> Vec<String> {
    if let [_, option, source] = &mut argv[..]
        && option == "-c"
        && let Some(rest) = source.strip_prefix(PREFIX)
        && !rest.contains("pyautogui")
    {
        *source = format!("import time; {rest}");
    }
    argv
}

/// The gestures of a command; none if it is another one.
pub(super) fn read_command(argv: &[String]) -> Option<Vec<Gesture>> {
    let [python, option, source] = argv else {
        return None;
    };
    let is_python = matches!(python.as_str(), "python" | "python3");
    if !is_python || option != "-c" || !source.contains("pyautogui") {
        return None;
    }
    read_source(source)
}

fn read_source(source: &str) -> Option<Vec<Gesture>> {
    let statements = read::statements(source)?;
    let gestures = statements.iter().map(call::gestures);
    Some(gestures.collect::<Option<Vec<_>>>()?.concat())
}

#[cfg(test)]
mod tests;
