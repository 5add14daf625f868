//! The compact suite: one window on a desktop of 224x168 logical pixels, drawn at scale 2 and
//! shown to the model at 224x168. Three of its 36 families are infeasible.

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use super::draft::Draft;
use super::{Family, family, infeasible, unseen, words};
use crate::env::simulated::app::{
    App, Choice, Dialog, Editor, Entry, Files, Form, Format, Glyph, Page, Settings, Themes, Toggle,
};
use crate::env::simulated::desktop::{Desktop, Placement, Window};
use crate::env::simulated::theme::Theme;
use crate::env::simulated::widget::CELL_PX;
use crate::types::ScreenSize;

/// Screen in logical pixels: 8 x 6 image tokens.
const SIZE_PX: (i32, i32) = (224, 168);
/// Screen pixels of a logical pixel.
const SCALE: u32 = 2;
/// Screen in pixels.
pub(super) const SCREEN: ScreenSize = ScreenSize {
    width: SIZE_PX.0 as u32 * SCALE,
    height: SIZE_PX.1 as u32 * SCALE,
};
/// Rows of cells above the bottom bar.
const USABLE_ROWS: i32 = 5;

type Rng64 = Pcg64Mcg;

/// All families. The last five are too long for a cloned base agent and kept unseen.
pub(super) const FAMILIES: [Family; 36] = [
    family("ed_sub", "editor", 3, ed_sub),
    family("ed_sup", "editor", 3, ed_sup),
    family("ed_fix", "editor", 4, ed_fix),
    family("ed_all", "editor", 3, ed_all),
    family("ed_char", "editor", 3, ed_char),
    family("ed_plain", "editor", 3, ed_plain),
    family("ed_save", "editor", 2, ed_save),
    family("ed_undo", "editor", 2, ed_undo),
    family("ed_write", "editor", 3, ed_write),
    family("ed_clear", "editor", 3, ed_clear),
    family("ed_twice", "editor", 5, ed_twice),
    infeasible("ed_bad", "editor", ed_bad),
    family("se_one", "settings", 2, se_one),
    family("se_two", "settings", 3, se_two),
    family("se_scroll", "settings", 3, se_scroll),
    infeasible("se_bad", "settings", se_bad),
    family("ra_apply", "themes", 3, ra_apply),
    family("ra_chosen", "themes", 2, ra_chosen),
    family("fi_open", "files", 2, fi_open),
    family("fi_del", "files", 4, fi_del),
    family("fi_ren", "files", 5, fi_ren),
    family("fi_bin", "files", 2, fi_bin),
    family("fi_ask", "files", 2, fi_ask),
    infeasible("fi_bad", "files", fi_bad),
    family("di_press", "dialog", 2, di_press),
    family("di_two", "dialog", 3, di_two),
    family("fo_fill", "form", 3, fo_fill),
    family("fo_one", "form", 4, fo_one),
    family("fo_two", "form", 6, fo_two),
    family("fo_check", "form", 3, fo_check),
    family("fo_send", "form", 2, fo_send),
    unseen("ed_hard", "editor", 6, ed_hard),
    unseen("se_three", "settings", 4, se_three),
    unseen("fi_two", "files", 7, fi_two),
    unseen("fi_hard", "files", 8, fi_hard),
    unseen("fo_hard", "form", 9, fo_hard),
];

/// The draft of a family of this suite, for tasks that are made of others.
pub(super) fn app(rng: &mut Rng64, family: &str) -> Draft {
    let found = FAMILIES.iter().find(|other| other.name == family);
    (found
        .expect("only families of this file are asked for")
        .make)(rng)
}

/// One window somewhere on the grid of cells, in some theme.
fn desktop(rng: &mut Rng64, key: &str, app: App) -> Desktop {
    let (columns, rows) = app.size();
    let theme = *pick(rng, &Theme::ALL);
    let column = rng.random_range(1..=SIZE_PX.0 / CELL_PX - columns);
    let row = rng.random_range(0..=(USABLE_ROWS - rows - 1).max(0));
    let window = Window {
        key: key.to_owned(),
        x: column * CELL_PX,
        y: row * CELL_PX,
        placement: Placement::default(),
        app,
    };
    Desktop::new(SIZE_PX, SCALE, theme, vec![window])
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

/// The toolbar's usual order in half of the tasks, any order in the others.
fn toolbar(rng: &mut Rng64) -> Vec<Format> {
    let mut buttons = Format::ALL.to_vec();
    if rng.random_bool(0.5) {
        buttons.shuffle(rng);
    }
    buttons
}

fn editor(rng: &mut Rng64, text: &str) -> Editor {
    Editor::new(text, toolbar(rng))
}

fn ed_draft(rng: &mut Rng64, editor: Editor, instruction: String, want: &Editor) -> Draft {
    let goal = if want.text() == editor.text() {
        vec![("/editor/styles".to_owned(), json!(want.styles()))]
    } else {
        vec![
            ("/editor/text".to_owned(), json!(want.text())),
            ("/editor/styles".to_owned(), json!(want.styles())),
        ]
    };
    let desktop = desktop(rng, "editor", App::Editor(editor));
    Draft::new(desktop, instruction, goal)
}

/// A text with one digit, the digit's place.
fn digit_text(rng: &mut Rng64, texts: &[&'static str]) -> (&'static str, usize, char) {
    let text = pick(rng, texts);
    let found = text
        .chars()
        .enumerate()
        .find(|(_, ch)| ch.is_ascii_digit())
        .expect("every formula has a digit");
    (text, found.0, found.1)
}

fn ed_sub(rng: &mut Rng64) -> Draft {
    script(rng, &words::FORMULAS, Format::Subscript)
}

fn ed_sup(rng: &mut Rng64) -> Draft {
    script(rng, &words::POWERS, Format::Superscript)
}

fn script(rng: &mut Rng64, texts: &[&'static str], format: Format) -> Draft {
    let (text, place, digit) = digit_text(rng, texts);
    let editor = editor(rng, text);
    let mut want = editor.clone();
    want.glyphs[place].set(format);
    let instruction = format!("Make the {digit} in {text} a {}", format.name());
    ed_draft(rng, editor, instruction, &want)
}

fn ed_fix(rng: &mut Rng64) -> Draft {
    let (texts, right, wrong) = if rng.random_bool(0.5) {
        (&words::FORMULAS, Format::Subscript, Format::Superscript)
    } else {
        (&words::POWERS, Format::Superscript, Format::Subscript)
    };
    let (text, place, digit) = digit_text(rng, texts);
    let mut editor = editor(rng, text);
    let mut want = editor.clone();
    want.glyphs[place].set(right);
    editor.undo.push(editor.glyphs.clone());
    editor.glyphs[place].set(wrong);
    editor.selection = (place, place + 1);
    editor.saved = false;
    let instruction = format!(
        "Make the {digit} in {text} a {}, not a {}",
        right.name(),
        wrong.name()
    );
    ed_draft(rng, editor, instruction, &want)
}

fn ed_all(rng: &mut Rng64) -> Draft {
    let editor = editor_with_text(rng);
    let format = *pick(rng, &Format::ALL[..3]);
    let mut want = editor.clone();
    for glyph in &mut want.glyphs {
        glyph.set(format);
    }
    let instruction = format!("Make the whole text {}", format.name());
    ed_draft(rng, editor, instruction, &want)
}

fn editor_with_text(rng: &mut Rng64) -> Editor {
    let text = *pick(rng, &words::TEXTS);
    editor(rng, text)
}

fn ed_char(rng: &mut Rng64) -> Draft {
    let editor = editor_with_text(rng);
    let text = editor.text();
    let alone: Vec<usize> = (0..editor.glyphs.len())
        .filter(|i| text.matches(editor.glyphs[*i].ch).count() == 1)
        .collect();
    let place = *pick(rng, &alone);
    let format = *pick(rng, &Format::ALL[..3]);
    let mut want = editor.clone();
    want.glyphs[place].set(format);
    let instruction = format!(
        "Make the {} in {text} {}",
        editor.glyphs[place].ch,
        format.name()
    );
    ed_draft(rng, editor, instruction, &want)
}

fn ed_plain(rng: &mut Rng64) -> Draft {
    let want = editor_with_text(rng);
    let format = *pick(rng, &Format::ALL[..3]);
    let mut editor = want.clone();
    for glyph in &mut editor.glyphs {
        glyph.set(format);
    }
    let instruction = format!("Make the text not {}", format.name());
    ed_draft(rng, editor, instruction, &want)
}

fn ed_save(rng: &mut Rng64) -> Draft {
    let mut editor = editor_with_text(rng);
    editor.saved = false;
    let desktop = desktop(rng, "editor", App::Editor(editor));
    let goal = vec![("/editor/saved".to_owned(), json!(true))];
    Draft::new(desktop, "Save the text".into(), goal)
}

fn ed_undo(rng: &mut Rng64) -> Draft {
    let want = editor_with_text(rng);
    let mut editor = want.clone();
    editor.undo.push(editor.glyphs.clone());
    let mut typed: Vec<Glyph> = pick(rng, &words::TYPED).chars().map(Glyph::plain).collect();
    std::mem::swap(&mut editor.glyphs, &mut typed);
    let end = editor.glyphs.len();
    editor.selection = (end, end);
    editor.saved = false;
    ed_draft(rng, editor, "Undo the last change".into(), &want)
}

fn ed_write(rng: &mut Rng64) -> Draft {
    let editor = editor_with_text(rng);
    let typed = pick(rng, &words::TYPED);
    let want = Editor::new(typed, editor.buttons.clone());
    let instruction = format!("Replace the text with '{typed}'");
    ed_draft(rng, editor, instruction, &want)
}

fn ed_clear(rng: &mut Rng64) -> Draft {
    let editor = editor_with_text(rng);
    let want = Editor::new("", editor.buttons.clone());
    ed_draft(rng, editor, "Delete the whole text".into(), &want)
}

fn ed_twice(rng: &mut Rng64) -> Draft {
    let editor = editor_with_text(rng);
    let text = editor.text();
    let want = Editor::new(&format!("{text}{text}"), editor.buttons.clone());
    let instruction = "Copy the text and paste it at the end".into();
    ed_draft(rng, editor, instruction, &want)
}

fn ed_bad(rng: &mut Rng64) -> Draft {
    let (text, _, digit) = digit_text(rng, &words::FORMULAS);
    let editor = editor(rng, text);
    let absent: Vec<char> = ('1'..='9').filter(|ch| *ch != digit).collect();
    let other = pick(rng, &absent);
    let instruction = format!("Make the {other} in {text} a subscript");
    let desktop = desktop(rng, "editor", App::Editor(editor));
    Draft::new(desktop, instruction, Vec::new())
}

fn ed_hard(rng: &mut Rng64) -> Draft {
    let (text, place, digit) = digit_text(rng, &words::FORMULAS);
    let editor = editor(rng, text);
    let mut want = editor.clone();
    for glyph in &mut want.glyphs {
        glyph.set(Format::Bold);
    }
    want.glyphs[place].set(Format::Subscript);
    let instruction =
        format!("Make the {digit} in {text} a subscript, then the whole text bold, and save");
    let mut draft = ed_draft(rng, editor, instruction, &want);
    draft.goal.push(("/editor/saved".to_owned(), json!(true)));
    draft
}

fn settings(rng: &mut Rng64, rows: usize) -> Settings {
    let rows = sample(rng, &words::SETTINGS, rows)
        .into_iter()
        .map(|(label, icon)| Toggle {
            label: label.to_owned(),
            icon,
            on: rng.random_bool(0.5),
        })
        .collect();
    Settings { rows, first: 0 }
}

/// `Turn Wifi on and Sound off` for the given rows, and that goal.
fn se_draft(rng: &mut Rng64, settings: Settings, rows: &[usize]) -> Draft {
    let mut goal = Vec::new();
    let mut words = Vec::new();
    for row in rows {
        let Toggle { label, on, .. } = &settings.rows[*row];
        words.push(format!("{label} {}", if *on { "off" } else { "on" }));
        goal.push((format!("/settings/{label}"), Value::Bool(!on)));
    }
    let desktop = desktop(rng, "settings", App::Settings(settings));
    let instruction = format!("Turn {}", words.join(" and "));
    let draft = Draft::new(desktop, instruction, goal);
    if rows.len() == 1 {
        draft
    } else {
        draft.in_parts()
    }
}

fn se_some(rng: &mut Rng64, count: usize) -> Draft {
    let settings = settings(rng, 4);
    let rows = sample(rng, &[0, 1, 2, 3], count);
    se_draft(rng, settings, &rows)
}

fn se_one(rng: &mut Rng64) -> Draft {
    se_some(rng, 1)
}

fn se_two(rng: &mut Rng64) -> Draft {
    se_some(rng, 2)
}

fn se_three(rng: &mut Rng64) -> Draft {
    se_some(rng, 3)
}

fn se_scroll(rng: &mut Rng64) -> Draft {
    let settings = settings(rng, 6);
    let row = rng.random_range(4..6);
    se_draft(rng, settings, &[row])
}

fn se_bad(rng: &mut Rng64) -> Draft {
    let mut settings = settings(rng, 5);
    let absent = settings.rows.pop().expect("five rows were made");
    let state = if absent.on { "off" } else { "on" };
    let instruction = format!("Turn {} {state}", absent.label);
    let desktop = desktop(rng, "settings", App::Settings(settings));
    Draft::new(desktop, instruction, Vec::new())
}

fn themes(rng: &mut Rng64) -> Themes {
    let choices = sample(rng, &words::THEMES, 4)
        .into_iter()
        .map(|(label, swatch)| Choice {
            label: label.to_owned(),
            swatch,
        })
        .collect();
    let chosen = rng.random_range(0..4);
    Themes {
        choices,
        chosen,
        applied: chosen,
    }
}

fn ra_draft(rng: &mut Rng64, themes: Themes, wanted: usize) -> Draft {
    let label = themes.choices[wanted].label.clone();
    let goal = vec![("/themes/applied".to_owned(), json!(label))];
    let desktop = desktop(rng, "themes", App::Themes(themes));
    Draft::new(desktop, format!("Set the theme to {label}"), goal)
}

fn ra_apply(rng: &mut Rng64) -> Draft {
    let themes = themes(rng);
    let wanted = (themes.chosen + rng.random_range(1..4)) % 4;
    ra_draft(rng, themes, wanted)
}

fn ra_chosen(rng: &mut Rng64) -> Draft {
    let mut themes = themes(rng);
    let wanted = (themes.chosen + rng.random_range(1..4)) % 4;
    themes.chosen = wanted;
    ra_draft(rng, themes, wanted)
}

fn files(rng: &mut Rng64, count: usize) -> Files {
    let entries = sample(rng, &words::FILES, count)
        .into_iter()
        .map(|(name, icon)| Entry {
            name: name.to_owned(),
            icon,
            binned: false,
        })
        .collect();
    Files::new(entries, rng.random_bool(0.5))
}

fn some_files(rng: &mut Rng64) -> Files {
    let count = rng.random_range(3..=5);
    files(rng, count)
}

fn fi_draft(
    rng: &mut Rng64,
    files: Files,
    instruction: String,
    goal: Vec<(String, Value)>,
) -> Draft {
    let desktop = desktop(rng, "files", App::Files(files));
    Draft::new(desktop, instruction, goal)
}

fn entry_pointer(name: &str) -> String {
    format!("/files/entries/{name}")
}

fn fi_open(rng: &mut Rng64) -> Draft {
    let files = some_files(rng);
    let name = pick(rng, &files.entries).name.clone();
    let goal = vec![("/files/opened".to_owned(), json!(name))];
    fi_draft(rng, files, format!("Open {name}"), goal)
}

fn fi_del(rng: &mut Rng64) -> Draft {
    let files = some_files(rng);
    let name = pick(rng, &files.entries).name.clone();
    let goal = vec![(entry_pointer(&name), Value::Null)];
    fi_draft(rng, files, format!("Delete {name}"), goal)
}

fn fi_ren(rng: &mut Rng64) -> Draft {
    let files = some_files(rng);
    let name = pick(rng, &files.entries).name.clone();
    let typed = pick(rng, &words::TYPED);
    let goal = vec![
        (entry_pointer(&name), Value::Null),
        (entry_pointer(typed), json!("here")),
    ];
    fi_draft(rng, files, format!("Rename {name} to '{typed}'"), goal)
}

fn fi_bin(rng: &mut Rng64) -> Draft {
    let files = some_files(rng);
    let name = pick(rng, &files.entries).name.clone();
    let goal = vec![(entry_pointer(&name), json!("bin"))];
    fi_draft(rng, files, format!("Drag {name} to the Bin"), goal)
}

/// The question is on the screen already.
fn fi_ask(rng: &mut Rng64) -> Draft {
    let mut files = some_files(rng);
    let i = rng.random_range(0..files.entries.len());
    files.ask_about(i);
    let name = files.entries[i].name.clone();
    let goal = vec![(entry_pointer(&name), Value::Null)];
    fi_draft(rng, files, format!("Delete {name}"), goal)
}

fn fi_bad(rng: &mut Rng64) -> Draft {
    let count = rng.random_range(4..=6);
    let mut files = files(rng, count);
    let absent = files.entries.pop().expect("four files or more were made");
    let verb = pick(rng, &["Open", "Delete"]);
    let instruction = format!("{verb} {}", absent.name);
    fi_draft(rng, files, instruction, Vec::new())
}

fn fi_two(rng: &mut Rng64) -> Draft {
    let files = some_files(rng);
    let names = sample(rng, &files.entries, 2);
    let goal = names
        .iter()
        .map(|entry| (entry_pointer(&entry.name), Value::Null))
        .collect();
    let instruction = format!("Delete {} and {}", names[0].name, names[1].name);
    fi_draft(rng, files, instruction, goal).in_parts()
}

fn fi_hard(rng: &mut Rng64) -> Draft {
    let files = some_files(rng);
    let names = sample(rng, &files.entries, 2);
    let typed = pick(rng, &words::TYPED);
    let goal = vec![
        (entry_pointer(&names[0].name), Value::Null),
        (entry_pointer(&names[1].name), Value::Null),
        (entry_pointer(typed), json!("here")),
    ];
    let instruction = format!(
        "Delete {} and rename {} to '{typed}'",
        names[0].name, names[1].name
    );
    fi_draft(rng, files, instruction, goal).in_parts()
}

fn page(rng: &mut Rng64) -> Page {
    let count = rng.random_range(2..=3);
    Page {
        message: (*pick(rng, &words::MESSAGES)).to_owned(),
        buttons: sample(rng, &words::BUTTONS, count)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

fn di_draft(rng: &mut Rng64, pages: usize) -> Draft {
    let pages: Vec<Page> = (0..pages).map(|_| page(rng)).collect();
    let wanted: Vec<String> = pages
        .iter()
        .map(|page| pick(rng, &page.buttons).clone())
        .collect();
    let instruction = format!("Press {}", wanted.join(" and then "));
    let goal = vec![("/dialog/pressed".to_owned(), json!(wanted))];
    let dialog = Dialog {
        pages,
        pressed: Vec::new(),
    };
    let desktop = desktop(rng, "dialog", App::Dialog(dialog));
    Draft::new(desktop, instruction, goal)
}

fn di_press(rng: &mut Rng64) -> Draft {
    di_draft(rng, 1)
}

fn di_two(rng: &mut Rng64) -> Draft {
    di_draft(rng, 2)
}

fn form(rng: &mut Rng64) -> Form {
    let labels = sample(rng, &words::FIELDS, 3);
    Form::new(&labels)
}

/// A form with `count` fields to fill in, and what else is wanted.
fn fo_draft(rng: &mut Rng64, count: usize, agree: bool, send: bool) -> Draft {
    let form = form(rng);
    let mut goal = Vec::new();
    let mut words = Vec::new();
    let fields = sample(rng, &form.fields, count);
    let texts = sample(rng, &words::TYPED, count);
    for (field, text) in fields.iter().zip(texts) {
        words.push(format!("'{text}' as {}", field.label));
        goal.push((format!("/form/fields/{}", field.label), json!(text)));
    }
    let mut parts = Vec::new();
    if !words.is_empty() {
        parts.push(format!("Enter {}", words.join(" and ")));
    }
    if agree {
        parts.push("tick Agree".to_owned());
        goal.push(("/form/agree".to_owned(), json!(true)));
    }
    if send {
        parts.push("send the form".to_owned());
        goal.push(("/form/sent".to_owned(), json!(true)));
    }
    let instruction = capitalized(&parts.join(", "));
    let desktop = desktop(rng, "form", App::Form(form));
    Draft::new(desktop, instruction, goal)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_ascii_uppercase().to_string() + chars.as_str())
        .unwrap_or_default()
}

fn fo_fill(rng: &mut Rng64) -> Draft {
    fo_draft(rng, 1, false, false)
}

fn fo_one(rng: &mut Rng64) -> Draft {
    fo_draft(rng, 1, false, true)
}

fn fo_two(rng: &mut Rng64) -> Draft {
    fo_draft(rng, 2, false, true)
}

fn fo_check(rng: &mut Rng64) -> Draft {
    fo_draft(rng, 0, true, true)
}

fn fo_send(rng: &mut Rng64) -> Draft {
    fo_draft(rng, 0, false, true)
}

fn fo_hard(rng: &mut Rng64) -> Draft {
    fo_draft(rng, 3, true, true)
}
