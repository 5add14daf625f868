//! The page Tokens of Rollout: what it asks for and when, and how it looks.

use arpo::event::{EpisodeState, LearnedTokens, ReplyId, ReplyTokens, TokenSignals};
use arpo::tui::app::{App, Glyphs, RolloutPage};
use arpo::tui::theme::ColorDepth;
use arpo::tui::update::{Effect, Input, update};
use arpo::tui::work::{Job, Worked};
use arpo::types::Iteration;

use super::{SIZES, app, check_file, draw_at, here, press, text_of};

/// A reply as a byte-level tokenizer cuts it: blanks belong to the word behind them, and the
/// second character of two is spread over two tokens.
const PIECES: [&[u8]; 30] = [
    b"Thought",
    b":",
    b" The",
    b" dialog",
    b" \xe6\xa0\x87",
    b"\xe9\xa2",
    b"\x98",
    b" is",
    b" open",
    b";",
    b" I",
    b" press",
    b" \"",
    b"OK",
    b"\".",
    b"\n",
    b"Action",
    b":",
    b" click",
    b"(",
    b"start",
    b"_box",
    b"='",
    b"(",
    b"250",
    b",",
    b"222",
    b")",
    b"')",
    b"<|im_end|>",
];

fn tokens(learned: bool) -> ReplyTokens {
    let n = PIECES.len();
    let at = |place: usize| place as f32;
    let sampler = |place: usize| -0.4 - 0.03 * at(place * 7 % 13).powi(2);
    let signals = TokenSignals {
        advantage: 2.474_873,
        clip_low: 0.2,
        clip_high: 0.3,
        logprobs: (0..n)
            .map(|p| sampler(p) + 0.04 * (at(p * 5 % 17) - 8.0))
            .collect(),
        old_logprobs: (0..n).map(sampler).collect(),
        entropies: (0..n).map(|p| 0.11 * at(p * 3 % 19)).collect(),
    };
    ReplyTokens {
        ids: (100..100 + n as u32).collect(),
        pieces: PIECES.map(<[u8]>::to_vec).to_vec(),
        sampler_logprobs: (0..n).map(sampler).collect(),
        learned: learned.then_some(LearnedTokens {
            iteration: Iteration(11),
            replayed: false,
            signals,
        }),
    }
}

/// The page at the reply that `keys` lead to, and what it asks for.
fn opened(keys: &str) -> (App, ReplyId) {
    let mut app = app(ColorDepth::None);
    let effects = press(&mut app, keys);
    let [Effect::Work(Job::Tokens(reply))] = effects[..] else {
        panic!("{effects:?}");
    };
    (app, reply)
}

fn answer(app: &mut App, reply: ReplyId, tokens: Result<ReplyTokens, String>) {
    update(app, Input::Worked(Worked::Tokens(reply, tokens)));
}

const LEARNED: &str = "j j j l enter H T";

#[test]
fn pages_of_tokens_look_as_committed() {
    for (name, learned, keys) in [
        ("rollout_tokens", true, ""),
        ("rollout_tokens_end", true, "ctrl-d ctrl-d"),
        ("rollout_tokens_pending", false, ""),
    ] {
        for (width, height) in SIZES {
            let (mut app, reply) = opened(LEARNED);
            if !learned {
                // As before its update.
                app.run
                    .episodes
                    .get_mut(&reply.episode)
                    .unwrap()
                    .learned
                    .clear();
            }
            answer(&mut app, reply, Ok(tokens(learned)));
            press(&mut app, keys);
            let terminal = draw_at(&mut app, width, height);
            let path = here(&format!("screens/{name}_{width}x{height}.txt"));
            check_file(&path, &text_of(&terminal));
        }
    }
}

#[test]
fn tokens_are_asked_for_once_a_reply_and_again_once_it_is_learned_from() {
    let (mut app, reply) = opened(LEARNED);
    assert!(update(&mut app, Input::Clock(100)).effects.is_empty());
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(text.contains("loading"), "{text}");
    answer(&mut app, reply, Ok(tokens(false)));
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(text.contains("what was learned was pruned"), "{text}");
    // Its newest update is told.
    let episode = app.run.episodes.get_mut(&reply.episode).unwrap();
    episode.learned[0].ratio.0 += 0.5;
    let effects = update(&mut app, Input::Clock(200)).effects;
    assert_eq!(effects, [Effect::Work(Job::Tokens(reply))]);
    answer(&mut app, reply, Ok(tokens(true)));
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(text.contains("iteration 12, advantage +2.5"), "{text}");
    // Another step is another reply; the answer for the one before is not taken for it.
    let effects = press(&mut app, "l");
    let next = ReplyId { step: 1, ..reply };
    assert_eq!(effects, [Effect::Work(Job::Tokens(next))]);
    answer(&mut app, reply, Ok(tokens(true)));
    assert!(text_of(&draw_at(&mut app, 80, 24)).contains("loading"));
    // What failed is said, and asked for again once the engine is back, or the page opened anew.
    answer(&mut app, next, Err("the connection was lost".to_owned()));
    assert!(text_of(&draw_at(&mut app, 80, 24)).contains("the connection was lost"));
    let run = Box::new(app.run.clone());
    let effects = update(&mut app, Input::Snapshot(run, 0)).effects;
    assert_eq!(effects, [Effect::Work(Job::Tokens(next))]);
    assert!(press(&mut app, "T").is_empty());
    assert_eq!(app.ui.rollout.page, RolloutPage::All);
    assert_eq!(press(&mut app, "T"), [Effect::Work(Job::Tokens(next))]);
}

/// Whether an episode is looked for, given whether its group is collected.
type Wanted = fn(&EpisodeState, bool) -> bool;

#[test]
fn what_lies_in_no_file_is_not_asked_for() {
    let is_collected = |app: &App, one: &EpisodeState| {
        let group = one.group.and_then(|id| app.run.groups.get(&id));
        group.is_none_or(|group| group.std.is_some())
    };
    let cases: [(Wanted, &str); 3] = [
        (
            |one, _| one.is_running() && !one.steps.is_empty(),
            "tokens are known once the episode has ended",
        ),
        (
            |one, collected| one.outcome.is_some() && !collected,
            "tokens are known once all groups are collected",
        ),
        (
            |one, _| one.failure.is_some(),
            "an error ended the episode: its tokens were not kept",
        ),
    ];
    for (wanted, words) in cases {
        let mut app = app(ColorDepth::None);
        let mut episodes = app.run.episodes.values();
        let found = episodes.find(|one| wanted(one, is_collected(&app, one)));
        app.ui.rollout.pinned = Some(found.unwrap().id);
        assert!(press(&mut app, "2 T").is_empty(), "{words}");
        let text = text_of(&draw_at(&mut app, 80, 24));
        assert!(text.contains(words), "{words}:\n{text}");
    }
}

#[test]
fn clipping_is_read_without_color_and_in_ascii() {
    let (mut app, reply) = opened(LEARNED);
    app.ui.glyphs = Glyphs::Ascii;
    answer(&mut app, reply, Ok(tokens(true)));
    let text = text_of(&draw_at(&mut app, 80, 24));
    assert!(text.contains("^ clipped high"), "{text}");
    assert!(text.contains("_dialog"), "{text}");
    let clipped = text.lines().filter(|line| line.contains(" ^ ")).count();
    assert!(clipped > 1, "{text}");
    // The table leaves with all digits.
    let effects = press(&mut app, "x");
    let [Effect::Export { text, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(text.lines().count(), 1 + PIECES.len());
    let clipped = text
        .lines()
        .filter(|line| line.contains("\thigh\t"))
        .count();
    let learned = tokens(true).learned.unwrap().signals;
    let expected = (0..PIECES.len()).filter(|token| learned.ratio(*token) > 1.3);
    assert_eq!(clipped, expected.count());
}
