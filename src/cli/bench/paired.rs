//! Ratios of times of the same work done twice: the middle one, and how sure that is.
//!
//! By ranks, since what else the machine does makes single times longer by any factor and
//! never shorter; no law of theirs is assumed, and nothing is drawn.

use serde::Serialize;

use crate::event::score::sign_test;

/// What a 95 % interval leaves out.
const LEFT_OUT: f64 = 0.05;

/// The median of ratios of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Paired {
    /// The median; of two middle ones the geometric mean.
    pub(super) ratio: f64,
    /// Lower end of the interval that covers the true median 95 times in 100.
    pub(super) low: f64,
    /// Its upper end.
    pub(super) high: f64,
    /// Pairs.
    pub(super) n: usize,
}

impl Paired {
    /// Of `(time, time to compare it with)`, at least one pair, all above 0.
    ///
    /// Source: the interval is made of the medians that the sign test does not refuse (Conover,
    /// "Practical Nonparametric Statistics", 3.2). Fewer than six pairs refuse none: then it is
    /// their range, and covers less.
    pub(super) fn of(pairs: &[(f64, f64)]) -> Self {
        let mut ratios: Vec<f64> = pairs.iter().map(|(time, other)| time / other).collect();
        ratios.sort_by(f64::total_cmp);
        let n = ratios.len();
        let place = rank(n).saturating_sub(1);
        Self {
            ratio: (ratios[(n - 1) / 2] * ratios[n / 2]).sqrt(),
            low: ratios[place],
            high: ratios[n - 1 - place],
            n,
        }
    }

    /// Whether the two intervals have a ratio in common.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Which of `n` ordered values the interval begins with, from 1; it ends with the one as far from
/// the other end. 0 where no interval is sure enough.
fn rank(n: usize) -> usize {
    let refuses = |below: usize| sign_test(below as u32, (n - below) as u32) <= LEFT_OUT;
    (0..n / 2).take_while(|below| refuses(*below)).count()
}

#[cfg(test)]
mod tests {
    use super::{Paired, rank};

    #[test]
    fn intervals_begin_where_the_binomial_law_says() {
        // python: [scipy.stats.binom.ppf(0.025, n, 0.5) for n in (1, 5, 6, 10, 20, 24, 36, 100)]
        let known = [
            (1, 0),
            (5, 0),
            (6, 1),
            (10, 2),
            (20, 6),
            (24, 7),
            (36, 12),
            (100, 40),
        ];
        for (n, expected) in known {
            assert_eq!(rank(n), expected, "{n} pairs");
        }
    }

    #[test]
    fn the_middle_ratio_and_its_interval_are_found() {
        let of = |ratios: &[f64]| {
            let pairs: Vec<_> = ratios.iter().map(|ratio| (ratio * 4.0, 4.0)).collect();
            Paired::of(&pairs)
        };
        let expected = |ratio, low, high, n| Paired {
            ratio,
            low,
            high,
            n,
        };
        assert_eq!(of(&[1.5]), expected(1.5, 1.5, 1.5, 1));
        assert_eq!(of(&[2.0, 0.5]), expected(1.0, 0.5, 2.0, 2));
        // One iteration that something else held up moves nothing.
        let mut ratios = [1.0, 1.25, 0.75, 64.0, 1.5, 0.5, 1.125, 0.875, 1.375, 0.625];
        assert_eq!(of(&ratios[..3]), expected(1.0, 0.75, 1.25, 3));
        let ten = of(&ratios);
        assert_eq!((ten.low, ten.high, ten.n), (0.625, 1.5, 10));
        assert!((ten.ratio - (1.0_f64 * 1.125).sqrt()).abs() < 1e-12);
        ratios[3] = 2.0;
        assert_eq!(of(&ratios), ten);
    }

    #[test]
    fn intervals_overlap_where_they_share_a_ratio() {
        let between = |low, high| Paired {
            ratio: 1.0,
            low,
            high,
            n: 10,
        };
        let noise = between(0.98, 1.02);
        for (low, high, expected) in [
            (0.99, 1.01, true),
            (0.9, 1.1, true),
            (1.02, 1.1, true),
            (1.03, 1.1, false),
            (0.9, 0.97, false),
        ] {
            let other = between(low, high);
            assert_eq!(other.overlaps(&noise), expected, "{low} to {high}");
            assert_eq!(noise.overlaps(&other), expected, "{low} to {high}");
        }
    }
}
