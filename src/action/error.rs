//! Why a reply did not parse, and where.

use std::fmt;

/// A reply that does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Bytes from the start of the reply to what is wrong; at most its length.
    pub at: usize,
    /// What is wrong.
    pub kind: ParseErrorKind,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.at)
    }
}

impl std::error::Error for ParseError {}

/// What is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// There is no `Action:`.
    #[error("no `Action:`")]
    NoAction,
    /// `Action:` is followed by something else than a call, or by nothing.
    #[error("expected an action, found {found}")]
    ExpectedCall {
        /// What stands there.
        found: String,
    },
    /// A call of something that is not an action.
    #[error("unknown action `{name}`")]
    UnknownAction {
        /// Its name.
        name: String,
    },
    /// A call is not put together as one.
    #[error("expected {expected}, found {found}")]
    Syntax {
        /// What would be right.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A string has no end.
    #[error("string without an end")]
    UnclosedString,
    /// A text holds an unescaped quote and then something that may be a further call.
    #[error("unescaped quote before what may be another action")]
    AmbiguousQuote,
    /// An argument that the action does not have.
    #[error("{action} has no argument `{argument}`")]
    UnknownArgument {
        /// The action.
        action: &'static str,
        /// The argument.
        argument: String,
    },
    /// The same argument twice, perhaps under two names.
    #[error("argument `{argument}` given twice")]
    DuplicateArgument {
        /// The second one.
        argument: String,
    },
    /// An argument without which the action would do nothing.
    #[error("{action} needs `{argument}`")]
    MissingArgument {
        /// The action.
        action: &'static str,
        /// The argument.
        argument: &'static str,
    },
    /// An argument that says nothing.
    #[error("`{argument}` is empty")]
    EmptyArgument {
        /// The argument.
        argument: String,
    },
    /// A place that is not one.
    #[error("not a place: {reason}")]
    BadBox {
        /// Why.
        reason: &'static str,
    },
    /// A key no keyboard has.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// Its name as written.
        key: String,
    },
    /// `press` with several keys.
    #[error("press takes one key, use hotkey for several")]
    SeveralKeys,
    /// A scroll into no direction.
    #[error("direction is `{found}`, must be up, down, left or right")]
    BadDirection {
        /// What stands there.
        found: String,
    },
    /// An action after the one that ends the episode.
    #[error("action after {action}, which ends the episode")]
    AfterTerminal {
        /// The one that ends it.
        action: &'static str,
    },
}

impl ParseErrorKind {
    pub(super) fn at(self, at: usize) -> ParseError {
        ParseError { at, kind: self }
    }
}
