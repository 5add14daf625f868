//! How alike two texts are, by the measures that metrics use.

use std::collections::HashMap;
use std::hash::Hash;

/// `rapidfuzz.fuzz.ratio` as a fraction: what a longest common subsequence covers of both.
pub(super) fn ratio(left: &str, right: &str) -> f64 {
    percent(left, right) / 100.0
}

/// The same in per cent, as there.
pub(super) fn percent(left: &str, right: &str) -> f64 {
    let left_len = left.chars().count();
    let right_len = right.chars().count();
    let total = left_len + right_len;
    if total == 0 {
        return 100.0;
    }
    let common = rapidfuzz::distance::lcs_seq::similarity(left.chars(), right.chars());
    let distance = total - 2 * common;
    (1.0 - distance as f64 / total as f64) * 100.0
}

/// `difflib.SequenceMatcher(a=left, b=right).ratio()`: what matching blocks cover of both, found
/// greedily, the longest first. From 200 items on, what makes up more than 1 % of `right` starts
/// no block, as there (`autojunk`).
pub(super) fn matcher_ratio<T: Eq + Hash>(left: &[T], right: &[T]) -> f64 {
    let total = left.len() + right.len();
    if total == 0 {
        return 1.0;
    }
    let mut places: HashMap<&T, Vec<usize>> = HashMap::new();
    for (at, item) in right.iter().enumerate() {
        places.entry(item).or_default().push(at);
    }
    if right.len() >= 200 {
        let most = right.len() / 100 + 1;
        places.retain(|_, at| at.len() <= most);
    }
    let mut matched = 0;
    let mut spans = vec![(0..left.len(), 0..right.len())];
    while let Some((a, b)) = spans.pop() {
        let (i, j, len) = longest_match(left, right, &places, a.clone(), b.clone());
        if len > 0 {
            matched += len;
            spans.push((a.start..i, b.start..j));
            spans.push((i + len..a.end, j + len..b.end));
        }
    }
    2.0 * matched as f64 / total as f64
}

/// `SequenceMatcher.find_longest_match`: start in `left`, start in `right`, length.
fn longest_match<T: Eq + Hash>(
    left: &[T],
    right: &[T],
    places: &HashMap<&T, Vec<usize>>,
    a: std::ops::Range<usize>,
    b: std::ops::Range<usize>,
) -> (usize, usize, usize) {
    let (mut best_i, mut best_j, mut best) = (a.start, b.start, 0);
    // Length of the match that ends at each place of `right`, for the item of `left` before.
    let mut ending: HashMap<usize, usize> = HashMap::new();
    for i in a.clone() {
        let mut next = HashMap::new();
        for &j in places.get(&left[i]).map_or(&[][..], Vec::as_slice) {
            if !b.contains(&j) {
                continue;
            }
            let before = j.checked_sub(1).and_then(|j| ending.get(&j)).copied();
            let len = before.unwrap_or(0) + 1;
            next.insert(j, len);
            if len > best {
                (best_i, best_j, best) = (i + 1 - len, j + 1 - len, len);
            }
        }
        ending = next;
    }
    while best_i > a.start && best_j > b.start && left[best_i - 1] == right[best_j - 1] {
        (best_i, best_j, best) = (best_i - 1, best_j - 1, best + 1);
    }
    while best_i + best < a.end
        && best_j + best < b.end
        && left[best_i + best] == right[best_j + best]
    {
        best += 1;
    }
    (best_i, best_j, best)
}
