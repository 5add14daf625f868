//! What differs between two screenshots: regions, and their share of all pixels. Pure.

use crate::types::{Point, ScreenSize, Screenshot};

/// Side of the tiles that are compared, pixels.
const TILE: u32 = 16;
/// A channel counts as changed beyond this; antialiasing and cursors' shadows differ less.
const LEAST: u8 = 12;
/// Regions kept, the largest first.
const REGIONS: usize = 12;

/// A region that differs, in screen pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Its upper left corner.
    pub from: Point,
    /// Its lower right corner.
    pub to: Point,
}

/// What differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Share of the screen's pixels that differ.
    pub share: f64,
    /// Where they are, the largest region first.
    pub regions: Vec<Region>,
    /// Regions in all, those not kept too.
    pub count: usize,
}

/// Compares two screenshots of the same size.
pub fn changes(before: &Screenshot, after: &Screenshot) -> Result<Changes, String> {
    let size = after.size();
    if before.size() != size {
        return Err("the two screens differ in size".to_owned());
    }
    let tiles = changed_tiles(before, after);
    let changed: u64 = tiles.counts.iter().map(|count| u64::from(*count)).sum();
    let mut regions = tiles.regions(size);
    regions.sort_by(|a, b| area(*b).total_cmp(&area(*a)));
    let count = regions.len();
    regions.truncate(REGIONS);
    let all = u64::from(size.width) * u64::from(size.height);
    Ok(Changes {
        share: changed as f64 / all.max(1) as f64,
        regions,
        count,
    })
}

fn area(region: Region) -> f32 {
    (region.to.x - region.from.x) * (region.to.y - region.from.y)
}

/// Changed pixels by tile.
struct Tiles {
    across: usize,
    down: usize,
    counts: Vec<u32>,
}

fn changed_tiles(before: &Screenshot, after: &Screenshot) -> Tiles {
    let size = after.size();
    let across = size.width.div_ceil(TILE) as usize;
    let down = size.height.div_ceil(TILE) as usize;
    let mut counts = vec![0; across * down];
    let width = size.width.max(1) as usize;
    let pixels = before
        .rgb()
        .chunks_exact(3)
        .zip(after.rgb().chunks_exact(3));
    for (place, (old, new)) in pixels.enumerate() {
        if old == new {
            continue;
        }
        let differs = old.iter().zip(new).any(|(a, b)| a.abs_diff(*b) > LEAST);
        let (x, y) = (place % width, place / width);
        let tile = (y / TILE as usize) * across + x / TILE as usize;
        counts[tile] += u32::from(differs);
    }
    Tiles {
        across,
        down,
        counts,
    }
}

impl Tiles {
    /// Boxes around changed tiles that touch, corners too.
    fn regions(&self, size: ScreenSize) -> Vec<Region> {
        let mut seen = vec![false; self.counts.len()];
        let mut regions = Vec::new();
        for start in 0..self.counts.len() {
            if seen[start] || self.counts[start] == 0 {
                continue;
            }
            let (mut low, mut high) = ((usize::MAX, usize::MAX), (0, 0));
            let mut open = vec![start];
            seen[start] = true;
            while let Some(tile) = open.pop() {
                let (x, y) = (tile % self.across, tile / self.across);
                low = (low.0.min(x), low.1.min(y));
                high = (high.0.max(x), high.1.max(y));
                for near in self.neighbors(x, y) {
                    if !seen[near] && self.counts[near] > 0 {
                        seen[near] = true;
                        open.push(near);
                    }
                }
            }
            let edge = |tiles: usize, most: u32| (tiles as u32 * TILE).min(most) as f32;
            regions.push(Region {
                from: Point {
                    x: edge(low.0, size.width),
                    y: edge(low.1, size.height),
                },
                to: Point {
                    x: edge(high.0 + 1, size.width),
                    y: edge(high.1 + 1, size.height),
                },
            });
        }
        regions
    }

    fn neighbors(&self, x: usize, y: usize) -> impl Iterator<Item = usize> + use<> {
        let (across, down) = (self.across, self.down);
        let xs = x.saturating_sub(1)..=(x + 1).min(across - 1);
        xs.flat_map(move |x| {
            let ys = y.saturating_sub(1)..=(y + 1).min(down - 1);
            ys.map(move |y| y * across + x)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, changes};
    use crate::types::{ScreenSize, Screenshot};

    fn screen(width: u32, height: u32, lit: &[(u32, u32)]) -> Screenshot {
        let mut rgb = vec![0; (width * height * 3) as usize];
        for (x, y) in lit {
            rgb[((y * width + x) * 3) as usize] = 200;
        }
        Screenshot::new(ScreenSize { width, height }, rgb)
    }

    #[test]
    fn regions_are_what_touches() {
        let before = screen(100, 50, &[]);
        assert_eq!(changes(&before, &before), Ok(Changes::default()));
        // Two tiles that touch at a corner, and one far away at the odd edge.
        let after = screen(100, 50, &[(15, 15), (16, 16), (99, 49)]);
        let found = changes(&before, &after).unwrap();
        assert_eq!(found.count, 2);
        let large = found.regions[0];
        assert_eq!((large.from.x, large.from.y), (0.0, 0.0));
        assert_eq!((large.to.x, large.to.y), (32.0, 32.0));
        let small = found.regions[1];
        assert_eq!((small.to.x, small.to.y), (100.0, 50.0));
        assert!((found.share - 3.0 / 5000.0).abs() < 1e-12);
    }

    #[test]
    fn screens_of_other_sizes_are_refused_and_faint_differences_ignored() {
        let before = screen(20, 20, &[]);
        assert!(changes(&before, &screen(20, 21, &[])).is_err());
        let mut rgb = vec![0; 1200];
        rgb[0] = 5;
        let size = ScreenSize {
            width: 20,
            height: 20,
        };
        let found = changes(&before, &Screenshot::new(size, rgb)).unwrap();
        assert_eq!(found.count, 0);
    }
}
