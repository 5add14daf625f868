//! Numbers as the console writes them: short, each with its unit.

use crate::event::F;

/// What stands where there is no number.
pub const NOTHING: &str = "-";

/// A length of time: `420ms`, `3.1s`, `12:31`, `1:02:05`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", seconds, ms % 1000 / 100),
        60_000..3_600_000 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

/// A duration in four cells at most: `95ms`, `0.2s`, `7.9s`, `26s`, `12m`.
pub fn brief(ms: u64) -> String {
    match ms {
        0..100 => format!("{ms}ms"),
        100..9_950 => format!("{:.1}s", ms as f64 / 1000.0),
        _ => age(ms),
    }
}

/// An age in whole units: `0s`, `31s`, `12m`, `5h`, `3d`.
pub fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..100 => format!("{seconds}s"),
        100..6000 => format!("{}m", seconds / 60),
        6000..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How much of a limit is over, in the same unit: `6s of 120s`, `2:10 of 20:00`.
pub fn of_limit(ms: u64, limit_ms: u64) -> String {
    if ms.max(limit_ms) < 600_000 {
        return format!("{}s of {}s", ms / 1000, limit_ms.div_ceil(1000));
    }
    let whole = |ms: u64| match ms / 1000 {
        seconds @ 0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => duration(ms),
    };
    format!("{} of {}", whole(ms), whole(limit_ms))
}

/// A point of the run's time: `0:12:31`.
pub fn time(at_ms: u64) -> String {
    let seconds = at_ms / 1000;
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// A fraction in three cells where it fits: `.62`, `1.0`, `-.5`.
pub fn fraction(value: f64) -> String {
    if !value.is_finite() {
        return F(value).0.to_string();
    }
    let rounded = (value * 100.0).round() / 100.0;
    if rounded.abs() >= 1.0 {
        format!("{rounded:.1}")
    } else {
        let sign = if rounded < 0.0 { "-" } else { "" };
        format!("{sign}.{:02}", (rounded.abs() * 100.0).round() as u32)
    }
}

/// A fraction as a percentage: `2.1%`.
pub fn percent(value: f64) -> String {
    format!("{:.1}%", 100.0 * value)
}

/// A count: `999`, `9.1k`, `18k`, `2.4M`.
pub fn count(value: u64) -> String {
    let value_f = value as f64;
    match value {
        0..1000 => value.to_string(),
        1000..10_000 => format!("{:.1}k", value_f / 1e3),
        10_000..1_000_000 => format!("{:.0}k", value_f / 1e3),
        _ => format!("{:.1}M", value_f / 1e6),
    }
}

/// A number of any size in few cells: `0`, `.0038`, `.38`, `12.3`, `1.2e-6`, `2e-7`.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if magnitude >= 1000.0 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(magnitude.round() as u64));
    }
    let plain = match magnitude {
        m if m >= 100.0 => format!("{value:.0}"),
        m if m >= 1.0 => format!("{value:.1}"),
        m if m >= 0.1 => format!("{value:.2}"),
        m if m >= 0.001 => format!("{value:.4}"),
        _ => return format!("{value:.1e}").replace(".0e", "e"),
    };
    plain.replacen("0.", ".", usize::from(magnitude < 1.0))
}

/// A signed number: `+1.4`, `-.70`.
pub fn signed(value: f64) -> String {
    let text = if value.abs() >= 1.0 {
        format!("{value:.1}")
    } else {
        fraction(value)
    };
    if value > 0.0 {
        format!("+{text}")
    } else {
        text
    }
}

/// A bar of `cells` cells, filled to `part` of 1; eighths of a cell are drawn.
pub fn bar(part: f64, cells: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let part = if part.is_finite() {
        part.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let eighths = (part * cells as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS[eighths % 8]);
    bar
}

/// The last `cells` values as a line of eight heights; what is not finite is left blank.
pub fn sparkline(values: &[f64], cells: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(cells)..];
    let finite = || shown.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
    );
    shown
        .iter()
        .map(|value| {
            if !value.is_finite() {
                ' '
            } else if high <= low {
                HEIGHTS[0]
            } else {
                HEIGHTS[(((value - low) / (high - low) * 7.0).round() as usize).min(7)]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{
        age, bar, brief, count, duration, fraction, of_limit, short, signed, sparkline, time,
    };

    #[test]
    fn times_are_short() {
        let shown = [0, 420, 3_140, 59_999, 751_000, 3_725_000].map(duration);
        assert_eq!(shown, ["0ms", "420ms", "3.1s", "59.9s", "12:31", "1:02:05"]);
        let shown = [0, 31_000, 720_000, 20_000_000, 300_000_000].map(age);
        assert_eq!(shown, ["0s", "31s", "12m", "5h", "3d"]);
        let shown = [0, 95, 100, 749, 9_949, 9_950, 26_800, 751_000].map(brief);
        assert_eq!(
            shown,
            ["0ms", "95ms", "0.1s", "0.7s", "9.9s", "9s", "26s", "12m"]
        );
        assert_eq!(time(751_000), "0:12:31");
        let limits = [
            (0, 30_000, "0s of 30s"),
            (119_999, 119_001, "119s of 120s"),
            (5_000, 1_800_000, "0:05 of 30:00"),
            (130_900, 1_200_000, "2:10 of 20:00"),
            (4_000_000, 7_200_000, "1:06:40 of 2:00:00"),
        ];
        for (ms, limit_ms, expected) in limits {
            assert_eq!(of_limit(ms, limit_ms), expected);
        }
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.625, 1.0, -0.5, 0.999, f64::NAN].map(fraction);
        assert_eq!(shown, [".00", ".63", "1.0", "-.50", "1.0", "NaN"]);
        assert_eq!(
            [999, 9_100, 18_234, 2_400_000].map(count),
            ["999", "9.1k", "18k", "2.4M"]
        );
        let shown = [0.0, 0.0038, 0.38, 12.34, 1.2e-6, 2e-7, 4321.0, -0.25, 10.0].map(short);
        assert_eq!(
            shown,
            [
                "0", ".0038", ".38", "12.3", "1.2e-6", "2e-7", "4.3k", "-.25", "10.0"
            ]
        );
        assert_eq!([1.43, -0.7, 0.0].map(signed), ["+1.4", "-.70", ".00"]);
    }

    #[test]
    fn bars_and_sparks_fill_their_cells() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.06, 4), "▎");
        assert_eq!(bar(f64::NAN, 4), "");
        assert_eq!(sparkline(&[9.0, 0.0, 1.0, f64::NAN, 0.5], 4), "▁█ ▅");
        assert_eq!(sparkline(&[1.0, 1.0], 4), "▁▁");
    }
}
