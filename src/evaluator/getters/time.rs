//! Dates that task files give in words, counted from the desktop's own clock.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use serde_json::{Map, Value, json};

use super::{GetterError, failed, raised};
use crate::env::RealDesktop;
use crate::env::guest::Command;
use crate::evaluator::found::Found;
use crate::types::osworld::getter::RelativeTime;

/// What the desktop's clock shows, and where it is in time: its date and time, its seconds since
/// 1970.
pub(super) async fn now(desktop: RealDesktop<'_>) -> Result<(DateTime, Timestamp), GetterError> {
    let command = Command::program(["date", "+%s %z"]);
    let output = desktop.machine.guest().run(&command).await;
    let written = output.map_err(failed)?.stdout;
    let read = || {
        let (seconds, zone) = written.trim().split_once(' ')?;
        let at = Timestamp::from_second(seconds.parse().ok()?).ok()?;
        let minutes: i32 = zone.get(3..)?.parse().ok()?;
        let hours: i32 = zone.get(1..3)?.parse().ok()?;
        let sign = if zone.starts_with('-') { -1 } else { 1 };
        let offset = Offset::from_seconds(sign * (hours * 60 + minutes) * 60).ok()?;
        Some((offset.to_datetime(at), at))
    };
    read().ok_or_else(|| raised(format!("the desktop's clock shows {written:?}")))
}

/// `get_rule_relativeTime`. Departs: the clock, and the zone where the rule names none, are the
/// desktop's; there they are the host's and that of its address on the web.
pub(super) async fn rule(
    desktop: RealDesktop<'_>,
    rules: &RelativeTime,
) -> Result<Found, GetterError> {
    let (there, at) = now(desktop).await?;
    let today = match &rules.timezone {
        None => there.date(),
        // As there, one that nobody knows is that of Greenwich.
        Some(name) => {
            let zone = TimeZone::get(name).unwrap_or(TimeZone::UTC);
            at.to_zoned(zone).date()
        }
    };
    let mut expected = rules.expected.clone();
    let span = &rules.relative_time;
    match &span.to {
        None => {
            let date = single(&span.from, today)?;
            fill_in(&mut expected, "time", date)?;
        }
        Some(to) => {
            let first = first_of_two(&span.from, today)?;
            for key in keys(&span.from, "next Monday split", "from", "pu") {
                fill_in(&mut expected, &key, first)?;
            }
            let second = second_of_two(to, &span.from, first, today)?;
            for key in keys(to, "next Friday split", "to", "do") {
                fill_in(&mut expected, &key, second)?;
            }
        }
    }
    Ok(Found::Value(written(rules, expected)))
}

/// Where a date of two goes: one entry, or its day, month and year apart.
fn keys(word: &str, split: &str, whole: &str, part: &str) -> Vec<String> {
    if word == split {
        ["Day", "Month", "Year"]
            .map(|of| format!("{part}{of}"))
            .into()
    } else {
        vec![whole.to_owned()]
    }
}

/// The rules with dates in them.
fn written(rules: &RelativeTime, expected: Map<String, Value>) -> Value {
    let span = &rules.relative_time;
    let mut relative = json!({"from": span.from});
    if let Some(to) = &span.to {
        relative["to"] = json!(to);
    }
    let mut written = json!({"relativeTime": relative});
    if let Some(timezone) = &rules.timezone {
        written["timezone"] = json!(timezone);
    }
    written["expected"] = Value::Object(expected);
    if rules.expect_in_result {
        written["expect_in_result"] = json!(true);
    }
    written
}

/// The only date.
fn single(word: &str, today: Date) -> Result<Date, GetterError> {
    match word {
        "tomorrow" => after(today, 1),
        "this month" => Ok(today),
        "5th next month" => next_month(today, 5),
        "10th next month" => next_month(today, 10),
        "next Monday" => after(today, 7 - weekday(today)),
        "first monday four months later" => first_monday(today, 4),
        "first monday eight months later" => first_monday(today, 8),
        other => Err(unknown(other)),
    }
}

/// The first date of two.
fn first_of_two(word: &str, today: Date) -> Result<Date, GetterError> {
    let day = weekday(today);
    let days = match word {
        "tomorrow" => 1,
        "10th next month" => return next_month(today, 10),
        "this Saturday" => 5 - day,
        "next Monday" | "next Monday split" => 7 - day,
        "next Friday" => next(4, day),
        "next Saturday" => next(5, day),
        "next week Friday" => 7 - day + 4,
        "next week Saturday" => 7 - day + 5,
        "next week Sunday" => 7 - day + 6,
        other => return Err(unknown(other)),
    };
    after(today, days)
}

/// The second date of two.
fn second_of_two(word: &str, from: &str, first: Date, today: Date) -> Result<Date, GetterError> {
    let day = weekday(today);
    let days = match word {
        "tomorrow" => 1,
        "11th next month" => return next_month(today, 11),
        "this Sunday" => 6 - day,
        "next Friday" | "next Friday split" => match from {
            "next Monday" | "next Monday split" => return after(first, 4),
            _ => next(4, day),
        },
        "next Sunday" => match from {
            "next Friday" | "next Saturday" => return after(first, 6 - weekday(first)),
            _ => next(6, day),
        },
        "next week Sunday" => match from {
            "next week Friday" | "next week Saturday" => {
                return after(first, 6 - weekday(first));
            }
            _ => 7 - day + 6,
        },
        other => return Err(unknown(other)),
    };
    after(today, days)
}

fn unknown(word: &str) -> GetterError {
    raised(format!("{word:?} is no time that is known in its place"))
}

/// Days to the next such day of the week, which is never today.
fn next(wanted: i64, today: i64) -> i64 {
    if today < wanted {
        wanted - today
    } else {
        wanted - today + 7
    }
}

/// From 0, which is Monday.
fn weekday(date: Date) -> i64 {
    i64::from(date.weekday().to_monday_zero_offset())
}

fn after(date: Date, days: i64) -> Result<Date, GetterError> {
    let moved = jiff::Span::new().try_days(days);
    let moved = moved.and_then(|span| date.checked_add(span));
    moved.map_err(|error| raised(error.to_string()))
}

fn next_month(today: Date, day: i8) -> Result<Date, GetterError> {
    let (year, month) = match today.month() {
        12 => (today.year() + 1, 1),
        month => (today.year(), month + 1),
    };
    date(year, month, day)
}

/// The first Monday so many months on. Where that is a December OSWorld asks for month 0, which
/// raises.
fn first_monday(today: Date, months: i8) -> Result<Date, GetterError> {
    let year = today.year() + i16::from(today.month() + months > 12);
    let first = date(year, (today.month() + months) % 12, 1)?;
    after(first, (7 - weekday(first)) % 7)
}

fn date(year: i16, month: i8, day: i8) -> Result<Date, GetterError> {
    Date::new(year, month, day).map_err(|error| raised(error.to_string()))
}

/// Puts a date into an entry. Departs: a list of texts is filled in text by text, which later
/// versions of OSWorld do; it raises in this one.
fn fill_in(expected: &mut Map<String, Value>, key: &str, date: Date) -> Result<(), GetterError> {
    let missing = || raised(format!("\"expected\" has no {key:?} for a date"));
    match expected.get_mut(key).ok_or_else(missing)? {
        Value::String(text) => *text = filled_in(text, date),
        Value::Array(texts) => {
            for text in texts {
                let Value::String(text) = text else {
                    return Err(raised(format!("{key:?} holds more than texts")));
                };
                *text = filled_in(text, date);
            }
        }
        _ => return Err(raised(format!("{key:?} is no text"))),
    }
    Ok(())
}

/// `apply_rules_to_timeFormat`: the first of each pattern, in this order.
fn filled_in(pattern: &str, date: Date) -> String {
    let (month, day) = (date.month(), date.day());
    let month_name = date.strftime("%B").to_string();
    let parts = [
        ("{DoW}", date.strftime("%a").to_string()),
        ("{Month}", month_name[..3].to_owned()),
        ("{DayD}", day.to_string()),
        ("{Year}", date.year().to_string()),
        ("{Month0D}", format!("{month:02}")),
        ("{month}", month_name.to_lowercase()),
        ("{MonthFull}", month_name.clone()),
        ("{Day0D}", format!("{day:02}")),
        ("{MonthD}", month.to_string()),
    ];
    let fill = |text: String, (pattern, part): (&str, String)| text.replacen(pattern, &part, 1);
    parts.into_iter().fold(pattern.to_owned(), fill)
}
