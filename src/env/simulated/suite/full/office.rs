//! Tasks in the calculator, the mailbox, the sheet and the calendar.

use std::collections::BTreeMap;

use rand::Rng;
use serde_json::{Value, json};

use super::{Rng64, draft, pick, sample};
use crate::env::simulated::app::{App, Calculator, Calendar, Mail, Sheet, cell_name};
use crate::env::simulated::suite::draft::Draft;
use crate::env::simulated::suite::words;

fn calculation(rng: &mut Rng64, operation: char, digits: [u32; 2]) -> Draft {
    let [a, b] = digits.map(|digits| rng.random_range(10_i64.pow(digits - 1)..10_i64.pow(digits)));
    let (a, b) = (a.max(b), a.min(b));
    let work = format!("{a}{operation}{b}");
    let instruction = format!("Work out {a} {operation} {b} in the Calculator");
    let goal = vec![("/calculator/worked_out".to_owned(), json!(work))];
    let app = App::Calculator(Calculator::default());
    let mut draft = draft("calculator", app, instruction, goal);
    draft.free.push("/calculator/display");
    draft
}

pub(super) fn ca_add(rng: &mut Rng64) -> Draft {
    calculation(rng, '+', [1, 1])
}

pub(super) fn ca_minus(rng: &mut Rng64) -> Draft {
    calculation(rng, '-', [2, 1])
}

pub(super) fn ca_times(rng: &mut Rng64) -> Draft {
    calculation(rng, '*', [1, 1])
}

pub(super) fn ca_long(rng: &mut Rng64) -> Draft {
    calculation(rng, '+', [3, 3])
}

const SENDERS: [&str; 6] = ["Anna", "Ben", "Clara", "Dev", "Emil", "Fay"];
const SUBJECTS: [&str; 6] = ["lunch", "invoice", "trip", "party", "report", "keys"];

pub(super) fn mail(rng: &mut Rng64) -> Mail {
    let senders = sample(rng, &SENDERS, 4);
    let subjects = sample(rng, &SUBJECTS, 4);
    let pairs = senders.into_iter().zip(subjects);
    Mail::new(
        pairs
            .map(|(from, subject)| (from.to_owned(), subject.to_owned()))
            .collect(),
    )
}

/// A task about one message of a mailbox: sender, subject, and the goal made of them.
fn mail_draft(
    mut mail: Mail,
    count: usize,
    instruction: impl Fn(&[(String, String)]) -> String,
    goal: impl Fn(&str, &str) -> (String, Value),
) -> Draft {
    let chosen: Vec<(String, String)> = mail.messages[..count]
        .iter()
        .map(|message| (message.from.clone(), message.subject.clone()))
        .collect();
    mail.messages.rotate_left(count + 1);
    let goals = chosen.iter().map(|(from, subject)| goal(from, subject));
    let goals = goals.collect();
    let draft = draft("mail", App::Mail(mail), instruction(&chosen), goals);
    if count == 1 { draft } else { draft.in_parts() }
}

fn message_pointer(subject: &str, field: &str) -> String {
    format!("/mail/messages/{subject}/{field}")
}

pub(super) fn ma_read(rng: &mut Rng64) -> Draft {
    mail_draft(
        mail(rng),
        1,
        |chosen| format!("Read the mail about {}", chosen[0].1),
        |_, subject| (format!("/mail/read/{subject}"), json!(true)),
    )
}

pub(super) fn ma_star(rng: &mut Rng64) -> Draft {
    mail_draft(
        mail(rng),
        1,
        |chosen| format!("Star the mail from {}", chosen[0].0),
        |_, subject| (message_pointer(subject, "starred"), json!(true)),
    )
}

pub(super) fn ma_unstar(rng: &mut Rng64) -> Draft {
    let mut mail = mail(rng);
    mail.messages[0].starred = true;
    mail.messages[1].starred = true;
    mail_draft(
        mail,
        1,
        |chosen| format!("Take the star off the mail about {}", chosen[0].1),
        |_, subject| (message_pointer(subject, "starred"), json!(false)),
    )
}

pub(super) fn ma_archive(rng: &mut Rng64) -> Draft {
    mail_draft(
        mail(rng),
        1,
        |chosen| format!("Archive the mail from {}", chosen[0].0),
        |_, subject| (message_pointer(subject, "place"), json!("archive")),
    )
}

pub(super) fn ma_delete(rng: &mut Rng64) -> Draft {
    mail_draft(
        mail(rng),
        1,
        |chosen| format!("Delete the mail about {}", chosen[0].1),
        |_, subject| (message_pointer(subject, "place"), json!("trash")),
    )
}

pub(super) fn ma_two(rng: &mut Rng64) -> Draft {
    mail_draft(
        mail(rng),
        2,
        |chosen| {
            format!(
                "Archive the mails about {} and {}",
                chosen[0].1, chosen[1].1
            )
        },
        |_, subject| (message_pointer(subject, "place"), json!("archive")),
    )
}

pub(super) fn ma_reply(rng: &mut Rng64) -> Draft {
    let text = *pick(rng, &words::TYPED);
    mail_draft(
        mail(rng),
        1,
        |chosen| format!("Answer {}'s mail with '{text}'", chosen[0].0),
        |from, _| ("/mail/sent".to_owned(), json!([format!("{from}: {text}")])),
    )
}

pub(super) fn ma_bad(rng: &mut Rng64) -> Draft {
    let mut mail = mail(rng);
    let gone = mail.messages.pop().expect("four messages were made");
    let instruction = format!("Archive {}'s mail", gone.from);
    draft("mail", App::Mail(mail), instruction, Vec::new())
}

/// A sheet with numbers in the first rows.
pub(super) fn sheet(rng: &mut Rng64) -> Sheet {
    let mut sheet = Sheet::new();
    for cell in &mut sheet.cells[..6] {
        *cell = rng.random_range(2..60).to_string();
    }
    sheet
}

fn cell_pointer(i: usize) -> String {
    format!("/sheet/{}", cell_name(i))
}

fn sheet_draft(sheet: Sheet, instruction: String, goal: Vec<(String, Value)>) -> Draft {
    draft("sheet", App::Sheet(sheet), instruction, goal)
}

/// Writes a word into each of the given cells.
fn sh_words(rng: &mut Rng64, places: &[usize]) -> Draft {
    let texts = sample(rng, &words::TYPED[..5], places.len());
    let pairs: Vec<(usize, &str)> = places.iter().copied().zip(texts).collect();
    let parts: Vec<String> = pairs
        .iter()
        .map(|(i, text)| format!("'{text}' into {}", cell_name(*i)))
        .collect();
    let goal = pairs
        .iter()
        .map(|(i, text)| (cell_pointer(*i), json!(text)))
        .collect();
    let instruction = format!("Write {} of the Sheet", parts.join(" and "));
    let draft = sheet_draft(sheet(rng), instruction, goal);
    if places.len() == 1 {
        draft
    } else {
        draft.in_parts()
    }
}

pub(super) fn sh_write(rng: &mut Rng64) -> Draft {
    let place = rng.random_range(6..12);
    sh_words(rng, &[place])
}

pub(super) fn sh_change(rng: &mut Rng64) -> Draft {
    let place = rng.random_range(0..6);
    sh_words(rng, &[place])
}

pub(super) fn sh_two(rng: &mut Rng64) -> Draft {
    let places = sample(rng, &[6, 7, 8, 9, 10, 11], 2);
    sh_words(rng, &places)
}

pub(super) fn sh_clear(rng: &mut Rng64) -> Draft {
    let place = rng.random_range(0..6);
    let instruction = format!("Empty the cell {} of the Sheet", cell_name(place));
    sheet_draft(
        sheet(rng),
        instruction,
        vec![(cell_pointer(place), json!(""))],
    )
}

pub(super) fn sh_sum(rng: &mut Rng64) -> Draft {
    let sheet = sheet(rng);
    let place = rng.random_range(6..9);
    let sum = sheet.sum_above(place).to_string();
    let instruction = format!(
        "Put the sum of the cells above into {} of the Sheet",
        cell_name(place)
    );
    sheet_draft(sheet, instruction, vec![(cell_pointer(place), json!(sum))])
}

pub(super) fn sh_copy(rng: &mut Rng64) -> Draft {
    let sheet = sheet(rng);
    let from = rng.random_range(0..3);
    let to = rng.random_range(9..12);
    let instruction = format!(
        "Copy the content of {} into {} of the Sheet",
        cell_name(from),
        cell_name(to)
    );
    let text = sheet.cells[from].clone();
    sheet_draft(sheet, instruction, vec![(cell_pointer(to), json!(text))])
}

pub(super) fn sh_bad(rng: &mut Rng64) -> Draft {
    let column = pick(rng, &["E", "F", "G"]);
    let instruction = format!("Empty {column}{} of the Sheet", rng.random_range(1..5));
    sheet_draft(sheet(rng), instruction, Vec::new())
}

fn calendar(rng: &mut Rng64) -> Calendar {
    let mut calendar = Calendar {
        month: rng.random_range(0..12),
        events: BTreeMap::new(),
        selected: None,
        draft: String::new(),
    };
    for _ in 0..3 {
        let day = calendar.day_name(rng.random_range(1..=31));
        let event = (*pick(rng, &SUBJECTS)).to_owned();
        calendar.events.insert(day, event);
    }
    calendar
}

fn calendar_draft(
    calendar: Calendar,
    instruction: String,
    goal: Vec<(String, Value)>,
    count: usize,
) -> Draft {
    let mut goal = goal;
    if count != calendar.events.len() {
        goal.push(("/calendar/count".to_owned(), json!(count)));
    }
    let mut draft = draft("calendar", App::Calendar(calendar), instruction, goal);
    draft.free.push("/calendar/month");
    draft
}

pub(super) fn cl_month(rng: &mut Rng64) -> Draft {
    let calendar = calendar(rng);
    let mut shown = calendar.clone();
    shown.month += if rng.random_bool(0.5) { 1 } else { 11 };
    let count = calendar.events.len();
    let instruction = format!("Show {} in the Calendar", shown.month_name());
    let goal = vec![("/calendar/month".to_owned(), json!(shown.month_name()))];
    calendar_draft(calendar, instruction, goal, count)
}

/// An event on a free day of the month `ahead` of the one shown.
fn cl_event(rng: &mut Rng64, ahead: usize) -> Draft {
    let calendar = calendar(rng);
    let mut then = calendar.clone();
    then.month += ahead;
    let free: Vec<String> = (1..=31)
        .map(|day| then.day_name(day))
        .filter(|day| !calendar.events.contains_key(day))
        .collect();
    let day = pick(rng, &free).clone();
    let text = pick(rng, &words::TYPED);
    let count = calendar.events.len() + 1;
    let instruction = format!("Enter '{text}' on {day} in the Calendar");
    let goal = vec![(format!("/calendar/events/{day}"), json!(text))];
    calendar_draft(calendar, instruction, goal, count)
}

pub(super) fn cl_add(rng: &mut Rng64) -> Draft {
    cl_event(rng, 0)
}

pub(super) fn cl_next(rng: &mut Rng64) -> Draft {
    cl_event(rng, 1)
}

pub(super) fn cl_remove(rng: &mut Rng64) -> Draft {
    let calendar = calendar(rng);
    let days: Vec<&String> = calendar.events.keys().collect();
    let day = (*pick(rng, &days)).clone();
    let count = calendar.events.len() - 1;
    let instruction = format!("Remove what is on {day} from the Calendar");
    let goal = vec![(format!("/calendar/events/{day}"), Value::Null)];
    calendar_draft(calendar, instruction, goal, count)
}
