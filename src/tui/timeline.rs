//! The time line of a recorded run: where it stands, and where to go from there.

use std::sync::Arc;

use crate::bus::{PlayRequest, TimelineInfo};
use crate::store::{IterationMark, Moment};
use crate::tui::app::App;

/// How fast a run plays unless told otherwise: hours in minutes.
pub const SPEED: f64 = 10.0;
/// Parts of the run that one step of time goes.
const STEPS: u64 = 100;

/// The time line as the console knows it.
#[derive(Clone, Debug, Default)]
pub struct TimelineUi {
    /// Known once the log has been read.
    pub info: Option<Arc<TimelineInfo>>,
    /// How fast it plays; it stands still if absent.
    pub speed: Option<f64>,
}

/// A place on it, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The begin of an iteration, counted from 1.
    Iteration(u64),
    /// So many iterations on or back.
    Iterations(i64),
    /// So many steps of a hundredth of the run's time on or back.
    Steps(i64),
    /// A part of the run's time, 0 to 1.
    Part(f64),
    /// Time since the run's first start, ms.
    Time(u64),
    /// The first event.
    Start,
    /// The last one.
    End,
}

/// Reads `12`, `+3`, `-3`, `40%`, `1:30`, `2:05:00`, `90s`, `start`, `end`.
pub fn parse_place(text: &str) -> Option<Place> {
    match text {
        "start" => return Some(Place::Start),
        "end" => return Some(Place::End),
        _ => {}
    }
    if let Some(percent) = text.strip_suffix('%') {
        let part: f64 = percent.trim().parse().ok()?;
        return (0.0..=100.0)
            .contains(&part)
            .then_some(Place::Part(part / 100.0));
    }
    if text.starts_with(['+', '-']) {
        return text.parse().ok().map(Place::Iterations);
    }
    let unit = |suffix: char, ms: u64| {
        let count: u64 = text.strip_suffix(suffix)?.parse().ok()?;
        count.checked_mul(ms).map(Place::Time)
    };
    let timed = unit('s', 1_000)
        .or_else(|| unit('m', 60_000))
        .or_else(|| unit('h', 3_600_000));
    if timed.is_some() {
        return timed;
    }
    if text.contains(':') {
        let seconds = text.split(':').try_fold(0_u64, |all, part| {
            let value: u64 = part.parse().ok()?;
            all.checked_mul(60)?.checked_add(value)
        });
        return seconds?.checked_mul(1_000).map(Place::Time);
    }
    text.parse().ok().filter(|n| *n > 0).map(Place::Iteration)
}

/// The moment a place stands for, as the run stands now; an error says why there is none.
pub fn moment(app: &App, place: Place) -> Result<Moment, String> {
    let info = known(app)?;
    let first_ms = info
        .marks
        .first()
        .map_or(0, |mark| mark.at_ms.min(info.end_ms));
    let begin_of = |number: i64| {
        let mark = info
            .marks
            .iter()
            .find(|mark| mark.iteration as i64 == number);
        // One event further, so that the state is that of the iteration.
        mark.map(|mark| Moment::Seq(mark.seq + 1))
    };
    Ok(match place {
        Place::Iteration(number) => begin_of(number as i64 - 1).ok_or_else(|| {
            let last = info.marks.last().map_or(0, |mark| mark.iteration + 1);
            format!("there is no iteration {number}; the run has {last}")
        })?,
        Place::Iterations(by) => neighbor(app, info, by),
        Place::Steps(by) => {
            let step = ((info.end_ms - first_ms) / STEPS).max(1);
            let now = app.run.at_ms as i64;
            Moment::Time((now + by * step as i64).max(0) as u64)
        }
        Place::Part(part) => {
            let whole = (info.end_ms - first_ms) as f64;
            Moment::Time(first_ms + (part * whole).round() as u64)
        }
        Place::Time(at_ms) => Moment::Time(at_ms),
        Place::Start => Moment::Seq(1),
        Place::End => Moment::Seq(info.end_seq),
    })
}

/// The begin of an iteration on or back from where the run stands. Going back first goes to the
/// begin of the one that is shown, and beyond the last lies the end.
fn neighbor(app: &App, info: &TimelineInfo, by: i64) -> Moment {
    let at = app.run.next_seq;
    let place = |mark: &IterationMark| mark.seq + 1;
    let behind = info.marks.iter().filter(|mark| place(mark) < at).count() as i64;
    let ahead = info.marks.iter().filter(|mark| place(mark) <= at).count() as i64;
    let target = if by < 0 { behind + by } else { ahead + by - 1 };
    if target < 0 {
        return Moment::Seq(1);
    }
    let mark = info.marks.get(target as usize);
    mark.map_or(Moment::Seq(info.end_seq), |mark| Moment::Seq(place(mark)))
}

/// The time line, or why there is none.
pub fn known(app: &App) -> Result<&TimelineInfo, String> {
    let Some(timeline) = &app.ui.timeline else {
        return Err("only recorded runs have a time line: arpo show RUN".to_owned());
    };
    let info = timeline.info.as_deref();
    info.ok_or_else(|| "the log is still being read".to_owned())
}

/// Whether the run stands at its end.
pub fn is_at_end(app: &App) -> bool {
    known(app).is_ok_and(|info| app.run.next_seq >= info.end_seq)
}

/// What to ask for so that the run plays, or stands still if it plays.
pub fn toggle(app: &mut App, speed: Option<f64>) -> Result<Vec<PlayRequest>, String> {
    known(app)?;
    let at_end = is_at_end(app);
    let Some(timeline) = &mut app.ui.timeline else {
        return Ok(Vec::new());
    };
    if timeline.speed.is_some() && speed.is_none() {
        timeline.speed = None;
        return Ok(vec![PlayRequest::Pause]);
    }
    let speed = speed.unwrap_or(SPEED);
    timeline.speed = Some(speed);
    // At its end it plays from its start.
    let restart = at_end.then_some(PlayRequest::Seek(Moment::Seq(1)));
    Ok(restart
        .into_iter()
        .chain([PlayRequest::Play(speed)])
        .collect())
}

/// After news: a run that played to its end stands still.
pub fn settle(app: &mut App) {
    if is_at_end(app)
        && let Some(timeline) = &mut app.ui.timeline
    {
        timeline.speed = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, parse_place};

    #[test]
    fn places_read_as_they_are_typed() {
        for (text, place) in [
            ("12", Some(Place::Iteration(12))),
            ("0", None),
            ("+3", Some(Place::Iterations(3))),
            ("-1", Some(Place::Iterations(-1))),
            ("40%", Some(Place::Part(0.4))),
            ("101%", None),
            ("1:30", Some(Place::Time(90_000))),
            ("2:00:05", Some(Place::Time(7_205_000))),
            ("90s", Some(Place::Time(90_000))),
            ("3m", Some(Place::Time(180_000))),
            ("start", Some(Place::Start)),
            ("end", Some(Place::End)),
            ("soon", None),
            ("", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse_place(text), place, "{text}");
        }
    }
}
