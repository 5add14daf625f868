//! What the page Tokens of Rollout works out: which reply's tokens are wanted, what is known of
//! them, and how each is written. Pure: from `RunState` and what was read, without ratatui.

use std::fmt::Write as _;
use std::ops::Range;

use crate::event::{
    Clip, EpisodeState, Purpose, ReplyId, ReplyTokens, RunState, StepSignal, TokenSignals,
};
use crate::tui::app::{App, RolloutPage, Screen};
use crate::tui::figures;
use crate::tui::fleet::rollout_episode;
use crate::tui::rollout::shown_step;
use crate::tui::work::Job;

/// What the page has read.
#[derive(Clone, Debug, Default)]
pub struct TokensUi {
    /// The reply asked for last, and what was told by then of what was learned from it: once more
    /// is told there is more to read.
    pub asked: Option<(ReplyId, Lessons)>,
    /// What was read last, or why it could not be.
    pub found: Option<(ReplyId, Result<ReplyTokens, String>)>,
}

/// What the log tells of a reply as its own episode's, and as a stored success's.
pub type Lessons = [Option<StepSignal>; 2];

impl TokensUi {
    /// Takes in what was read.
    pub fn take(&mut self, reply: ReplyId, tokens: Result<ReplyTokens, String>) {
        // What was asked for before is not looked at any more.
        if self
            .asked
            .as_ref()
            .is_some_and(|(asked, _)| *asked == reply)
        {
            self.found = Some((reply, tokens));
        }
    }

    /// What could not be read is asked for again.
    pub fn forget_failures(&mut self) {
        if !matches!(self.found, Some((_, Ok(_)))) {
            self.asked = None;
        }
    }
}

/// The reply whose tokens the operator waits for, if it was not asked for yet.
pub fn wanted_tokens(app: &mut App) -> Option<Job> {
    let view = &app.ui.rollout;
    if app.ui.screen != Screen::Rollout || view.page != RolloutPage::Tokens || view.only_picture {
        return None;
    }
    let episode = rollout_episode(app)?;
    if not_stored(&app.run, episode).is_some() {
        return None;
    }
    let reply = shown_reply(app, episode);
    let wanted = (reply, lessons(&app.run, episode, reply.step as usize));
    if app.ui.rollout.tokens.asked.as_ref() == Some(&wanted) {
        return None;
    }
    app.ui.rollout.tokens.asked = Some(wanted);
    Some(Job::Tokens(reply))
}

/// The reply looked at.
fn shown_reply(app: &App, episode: &EpisodeState) -> ReplyId {
    ReplyId {
        episode: episode.id,
        step: shown_step(app, episode) as u32,
    }
}

fn lessons(run: &RunState, episode: &EpisodeState, step: usize) -> Lessons {
    let stored = run.replay.values().flat_map(|task| &task.successes);
    let mut stored = stored.filter(|success| success.episode == episode.id);
    let replayed = stored.next().and_then(|success| success.learned.get(step));
    [episode.learned.get(step).copied(), replayed.copied()]
}

/// Why an episode's tokens lie in no file yet, or never will.
fn not_stored(run: &RunState, episode: &EpisodeState) -> Option<&'static str> {
    let group = episode.group.and_then(|id| run.groups.get(&id));
    if episode.failure.is_some() {
        Some("an error ended the episode: its tokens were not kept")
    } else if episode.steps.is_empty() {
        Some("no reply yet")
    } else if episode.is_running() {
        Some("tokens are known once the episode has ended")
    } else if group.is_some_and(|group| group.std.is_none()) {
        Some("tokens are known once all groups are collected")
    } else {
        None
    }
}

/// The tokens looked at, or what to say in their place.
pub fn shown_tokens<'a>(app: &'a App, episode: &EpisodeState) -> Result<&'a ReplyTokens, &'a str> {
    if let Some(reason) = not_stored(&app.run, episode) {
        return Err(reason);
    }
    match &app.ui.rollout.tokens.found {
        Some((reply, tokens)) if *reply == shown_reply(app, episode) => {
            tokens.as_ref().map_err(String::as_str)
        }
        Some(_) | None => Err("loading"),
    }
}

/// What was learned from a reply's tokens, in a few words; and whether something may be yet.
pub fn learned_words(app: &App, episode: &EpisodeState, tokens: &ReplyTokens) -> (String, bool) {
    if let Some(learned) = &tokens.learned {
        let replayed = if learned.replayed { ", replayed" } else { "" };
        let advantage = figures::signed(f64::from(learned.signals.advantage));
        let number = learned.iteration.0 + 1;
        let words = format!("iteration {number}{replayed}, advantage {advantage}");
        return (words, false);
    }
    let step = shown_step(app, episode);
    let was_told = lessons(&app.run, episode, step).iter().any(Option::is_some);
    let has_none = episode
        .advantage
        .is_some_and(|advantage| advantage.0 == 0.0);
    let (words, is_pending) = if tokens.sampler_logprobs.is_empty() {
        ("a person wrote it: never learned from", false)
    } else if was_told {
        ("what was learned was pruned", false)
    } else if episode.purpose != Purpose::Train {
        ("no training episode", false)
    } else if episode.replaced_by.is_some() {
        ("replay was learned in its place", false)
    } else if has_none {
        ("advantage 0: nothing to learn", false)
    } else {
        ("not learned from yet", true)
    };
    (words.to_owned(), is_pending)
}

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRow {
    /// Its text, made visible.
    pub text: String,
    /// The sampler's log-probability, nats; absent where a person wrote it.
    pub sampler: Option<f64>,
    /// What was learned; absent before.
    pub learned: Option<TokenFigures>,
}

/// What was learned from one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenFigures {
    /// Log-probability under the weights updated, nats.
    pub logprob: f64,
    /// Ratio to the weights before the iteration's first update.
    pub ratio: f64,
    /// Whether that was clipped.
    pub clip: Option<Clip>,
    /// Entropy, nats.
    pub entropy: f64,
}

impl TokenFigures {
    fn of(signals: &TokenSignals, token: usize) -> Option<Self> {
        // What came over a socket need not have as many as there are tokens.
        let entropy = f64::from(*signals.entropies.get(token)?);
        signals.old_logprobs.get(token)?;
        Some(Self {
            logprob: f64::from(*signals.logprobs.get(token)?),
            ratio: signals.ratio(token),
            clip: signals.clip(token),
            entropy,
        })
    }
}

/// A reply's tokens in reading order.
pub fn token_rows(tokens: &ReplyTokens) -> Vec<TokenRow> {
    let mut texts = visible(&tokens.pieces).into_iter();
    let row = |(place, id): (usize, &u32)| TokenRow {
        // Without a text it is called by its id.
        text: texts
            .next()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| format!("#{id}")),
        sampler: tokens.sampler_logprobs.get(place).copied().map(f64::from),
        learned: tokens
            .learned
            .as_ref()
            .and_then(|learned| TokenFigures::of(&learned.signals, place)),
    };
    tokens.ids.iter().enumerate().map(row).collect()
}

/// Texts of tokens with blanks, control characters and what has no glyph written out. Of a
/// character that is spread over several, each shows its bytes and which character it is.
pub fn visible(pieces: &[Vec<u8>]) -> Vec<String> {
    let bytes = pieces.concat();
    let characters = characters(&bytes);
    let mut end = 0;
    let mut next = 0;
    let text = |piece: &Vec<u8>| {
        let start = end;
        end += piece.len();
        let mut text = String::new();
        while let Some((range, character)) = characters.get(next) {
            if range.start >= end {
                break;
            }
            push_visible(&mut text, &bytes, (range, *character), start..end);
            if range.end > end {
                break;
            }
            next += 1;
        }
        text
    };
    pieces.iter().map(text).collect()
}

/// Where each character lies; a byte that belongs to none stands alone.
fn characters(bytes: &[u8]) -> Vec<(Range<usize>, Option<char>)> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut push = |length: usize, character: Option<char>| {
        found.push((at..at + length, character));
        at += length;
    };
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push(character.len_utf8(), Some(character));
        }
        for _ in chunk.invalid() {
            push(1, None);
        }
    }
    found
}

/// Writes as much of a character as lies within `piece`.
fn push_visible(
    text: &mut String,
    bytes: &[u8],
    (range, character): (&Range<usize>, Option<char>),
    piece: Range<usize>,
) {
    let is_whole = piece.start <= range.start && range.end <= piece.end;
    if let Some(character) = character.filter(|_| is_whole) {
        match character {
            ' ' => text.push('␣'),
            '\'' | '"' => text.push(character),
            _ => text.extend(character.escape_debug()),
        }
        return;
    }
    for byte in &bytes[range.start.max(piece.start)..range.end.min(piece.end)] {
        let _ = write!(text, "\\x{byte:02x}");
    }
    if let Some(character) = character {
        let _ = write!(text, " of {}", character.escape_debug());
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn every_token_can_be_seen() {
        // python: '标'.encode() -> b'\xe6\xa0\x87'
        for (pieces, expected) in [
            (vec!["Thought", ":", " a"], vec!["Thought", ":", "␣a"]),
            (vec!["\n\n", "\t", "", "'"], vec!["\\n\\n", "\\t", "", "'"]),
            (
                vec!["\u{200b}\u{1b}[m", "\\"],
                vec!["\\u{200b}\\u{1b}[m", "\\\\"],
            ),
            (vec!["\u{301}", "标题"], vec!["\\u{301}", "标题"]),
        ] {
            let pieces: Vec<Vec<u8>> = pieces.iter().map(|text| text.as_bytes().into()).collect();
            assert_eq!(visible(&pieces), expected);
        }
        let parts: [&[u8]; 4] = [b" \xe6", b"\xa0", b"\x87x", b"\xff!"];
        assert_eq!(
            visible(&parts.map(<[u8]>::to_vec)),
            ["␣\\xe6 of 标", "\\xa0 of 标", "\\x87 of 标x", "\\xff!"]
        );
    }
}
