//! Prompts against `transformers`: committed answers and the live one; and piece by piece
//! against the whole.

use arpo::config::PromptStyle;
use arpo::prompt::{Content, Message, PromptBuilder, Role, TurnEnd};
use arpo::types::ScreenSize;
use serde_json::{Value, json};

use crate::reference;

const SCRIPT: &str = "prompt/reference.py";
const ANSWERS: &str = "prompt/transformers.json";

const DESKTOP: ScreenSize = ScreenSize {
    width: 448,
    height: 336,
};
const SMALL: ScreenSize = ScreenSize {
    width: 100,
    height: 60,
};

fn builder() -> PromptBuilder {
    PromptBuilder::open(&reference::fixtures().join("prompt/tiny")).expect("its files are whole")
}

fn assistant(words: &str) -> Message {
    Message::text(Role::Assistant, words)
}

/// Conversations with their ends, every kind of message among them.
fn conversations(builder: &PromptBuilder) -> Vec<(Vec<Message>, TurnEnd)> {
    let tiny = builder.opening(PromptStyle::Tiny, "make the 2 a subscript", DESKTOP);
    let ui_tars = builder.opening(PromptStyle::UiTars, "把 2 改成下标\n<b>", SMALL);
    let mut long = tiny.clone();
    for reply in 0..14 {
        long.push(assistant(&format!("Thought: {reply}\nAction: wait()")));
        long.push(Message::image(if reply % 2 == 0 { SMALL } else { DESKTOP }));
    }
    let mixed = Message {
        role: Role::User,
        content: vec![
            Content::Image(SMALL),
            Content::Text("{{ not }} {% a %} template".to_owned()),
            Content::Image(DESKTOP),
        ],
    };
    vec![
        (tiny, TurnEnd::OpenReply),
        (ui_tars, TurnEnd::OpenReply),
        (long, TurnEnd::OpenReply),
        (vec![mixed, assistant("ok")], TurnEnd::Complete),
    ]
}

/// The conversation as `transformers` takes it.
fn question(messages: &[Message], end: TurnEnd) -> Value {
    let mut images = Vec::new();
    let messages: Vec<Value> = messages
        .iter()
        .map(|message| {
            let parts = message.content.iter().map(|part| match part {
                Content::Text(text) => json!({"type": "text", "text": text}),
                Content::Image(size) => {
                    images.push(json!([size.width, size.height]));
                    json!({"type": "image"})
                }
            });
            let parts: Vec<Value> = parts.collect();
            json!({"role": message.role, "content": parts})
        })
        .collect();
    json!({"messages": messages, "images": images, "open_reply": end == TurnEnd::OpenReply})
}

fn answers(builder: &PromptBuilder) -> Value {
    let all = conversations(builder).into_iter().map(|(messages, end)| {
        let piece = builder.build(&messages, end).expect("it renders");
        json!({"text": piece.text, "ids": piece.ids})
    });
    all.collect()
}

#[test]
fn committed_answers_of_transformers_are_met() {
    let path = reference::fixtures().join(ANSWERS);
    let theirs: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(answers(&builder()), theirs);
}

#[test]
fn text_and_ids_are_those_of_live_transformers() {
    let builder = builder();
    let questions: Vec<Value> = conversations(&builder)
        .iter()
        .map(|(messages, end)| question(messages, *end))
        .collect();
    let dir = reference::fixtures().join("prompt/tiny");
    let task = json!({"dir": dir, "conversations": questions});
    let Some(theirs) = reference::run(SCRIPT, &task.to_string()) else {
        return;
    };
    if reference::is_update() {
        let path = reference::fixtures().join(ANSWERS);
        std::fs::write(path, format!("{theirs}\n")).unwrap();
    }
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    assert_eq!(answers(&builder), theirs);
}

#[test]
fn pieces_with_replies_between_are_the_whole_conversation() {
    let builder = builder();
    for style in [PromptStyle::Tiny, PromptStyle::UiTars] {
        let mut messages = builder.opening(style, "undo it", DESKTOP);
        let mut ids = builder.first(style, "undo it", DESKTOP).unwrap().ids;
        for (reply, image) in [
            ("Thought: undo\nAction: hotkey(key='ctrl z')", DESKTOP),
            ("Action: type(content='你好\\n')", SMALL),
            ("Thought: done\nAction: finished()", DESKTOP),
        ] {
            ids.extend(builder.encode(reply).unwrap());
            ids.push(builder.special().turn_end);
            ids.extend(builder.next(image).unwrap().ids);
            messages.push(assistant(reply));
            messages.push(Message::image(image));
        }
        let whole = builder.build(&messages, TurnEnd::OpenReply).unwrap();
        assert_eq!(ids, whole.ids);
    }
}
