//! Whether a desktop has become slower than it was.
//!
//! Compares a desktop with itself alone: what is slow on one host is usual on another.

use std::collections::VecDeque;

use crate::config::FleetConfig;

/// Smaller differences are nothing that anybody waits for, whatever their ratio, ms.
const LEAST_MS: u64 = 100;

/// The times of a desktop's actions, by episode.
#[derive(Clone, Debug, Default)]
pub(super) struct Trend {
    /// Those of its first episodes.
    first: Vec<Vec<u64>>,
    /// Those of its newest ones.
    newest: VecDeque<Vec<u64>>,
    /// Those of the one under way.
    current: Vec<u64>,
    /// Episodes so far, those without an action not counted.
    episodes: u32,
}

impl Trend {
    /// An action of the episode under way took so long.
    pub(super) fn acted(&mut self, took_ms: u64) {
        self.current.push(took_ms);
    }

    /// The episode under way is over.
    pub(super) fn episode_over(&mut self, config: &FleetConfig) {
        let times = std::mem::take(&mut self.current);
        if times.is_empty() {
            return;
        }
        self.episodes += 1;
        if self.first.len() < config.recycle_baseline_episodes {
            self.first.push(times.clone());
        }
        self.newest.push_back(times);
        while self.newest.len() > config.recycle_window_episodes {
            self.newest.pop_front();
        }
    }

    /// Median time of an action in its first episodes, ms; none before they are over.
    pub(super) fn baseline_ms(&self, config: &FleetConfig) -> Option<u64> {
        let is_whole = self.first.len() >= config.recycle_baseline_episodes;
        median(self.first.iter().filter(|_| is_whole))
    }

    /// The same in its newest ones, ms.
    pub(super) fn newest_ms(&self) -> Option<u64> {
        median(self.newest.iter())
    }

    /// Why the desktop is to be opened anew, if it is.
    pub(super) fn verdict(&self, config: &FleetConfig) -> Option<String> {
        let most = config.recycle_after_episodes;
        if most > 0 && self.episodes >= most {
            return Some(format!("it has had {} of {most} episodes", self.episodes));
        }
        // None of the newest episodes is among those that they are compared with.
        let apart = config.recycle_baseline_episodes + config.recycle_window_episodes;
        let ratio = config.recycle_latency_ratio;
        if ratio == 0.0 || (self.episodes as usize) < apart {
            return None;
        }
        let (newest, baseline) = (self.newest_ms()?, self.baseline_ms(config)?);
        let slower = newest as f64 >= ratio * baseline as f64;
        (slower && newest >= baseline + LEAST_MS)
            .then(|| format!("its actions take {newest} ms, {baseline} ms in its first episodes"))
    }
}

/// The median of all times, the upper of two middle ones.
fn median<'a>(episodes: impl Iterator<Item = &'a Vec<u64>>) -> Option<u64> {
    let mut all: Vec<u64> = episodes.flatten().copied().collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Resolved;

    /// Ratio and most episodes; the times of each episode; the first that is told of, and how.
    type Row<'a> = (f64, u32, Vec<&'a [u64]>, Option<usize>, &'a str);

    #[test]
    fn a_desktop_is_slow_by_its_own_measure_and_told_once_it_lasts() {
        let quick: &[u64] = &[300, 310, 290];
        let slow: &[u64] = &[900, 620, 580];
        let table: [Row<'_>; 10] = [
            (2.0, 0, vec![quick; 50], None, ""),
            (
                2.0,
                0,
                [vec![quick; 2], vec![slow; 2]].concat(),
                Some(3),
                "620 ms, 300 ms in",
            ),
            // As slow from the start is no trend.
            (2.0, 0, vec![slow; 50], None, ""),
            // One slow episode is none.
            (
                2.0,
                0,
                vec![quick, quick, quick, slow, quick, quick],
                None,
                "",
            ),
            (0.0, 0, [vec![quick; 2], vec![slow; 9]].concat(), None, ""),
            (2.1, 0, [vec![quick; 2], vec![slow; 9]].concat(), None, ""),
            (
                2.0,
                0,
                [vec![&[4_u64][..]; 2], vec![&[80]; 9]].concat(),
                None,
                "",
            ),
            // Episodes without an action say nothing.
            (
                2.0,
                0,
                vec![quick, &[], quick, &[], slow, &[], slow],
                Some(6),
                "620 ms",
            ),
            (
                0.0,
                3,
                vec![quick; 5],
                Some(2),
                "it has had 3 of 3 episodes",
            ),
            (2.0, 3, vec![quick, quick, &[], &[]], None, ""),
        ];
        for (ratio, most, episodes, first, says) in table {
            let config = FleetConfig {
                recycle_latency_ratio: ratio,
                recycle_baseline_episodes: 2,
                recycle_window_episodes: 2,
                recycle_after_episodes: most,
                ..Resolved::load::<&str>(&[], &[]).unwrap().profile.env.fleet
            };
            let mut trend = Trend::default();
            let told = episodes.iter().map(|times| {
                times.iter().for_each(|took| trend.acted(*took));
                trend.episode_over(&config);
                trend.verdict(&config)
            });
            let told: Vec<Option<String>> = told.collect();
            let case = format!("{ratio} {most} {episodes:?}: {told:?}");
            assert_eq!(told.iter().position(Option::is_some), first, "{case}");
            let words = told.iter().flatten().next().cloned().unwrap_or_default();
            assert!(words.contains(says), "{case}");
        }
    }
}
