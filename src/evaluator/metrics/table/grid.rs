//! The cells of a sheet as they lie beside each other, with what is merged and linked.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::MetricError;
use super::super::python::raised;
use super::book::{Sheet, related, relation_id};
use super::cell::Datum;
use super::range::{Place, Range};
use super::xml::{child, children, parse};

/// Most cells of a sheet, those between others too, that are looked at one by one.
const MOST: u64 = 20_000_000;

/// What styles are told by of a cell.
#[derive(Clone, Debug, Default)]
pub(super) struct Spot {
    pub(super) has_value: bool,
    /// Whether what it has is a plain number, no formula and no date.
    pub(super) is_number: bool,
    pub(super) style: usize,
    /// Whether it is merged into another.
    pub(super) is_merged: bool,
    /// What it links to.
    pub(super) link: Option<Value>,
}

/// All cells of a sheet that are there.
pub(super) struct Grid(BTreeMap<Place, Spot>);

impl Sheet {
    /// Its cells, with those that merging, links and comments make.
    pub(super) fn grid(&self) -> Result<Grid, MetricError> {
        let mut grid = Grid(BTreeMap::new());
        for cell in self.rows.iter().flat_map(|(_, cells)| cells) {
            let spot = Spot {
                has_value: cell.formula.is_some() || cell.value != Datum::Nothing,
                is_number: cell.is_number,
                style: cell.style,
                ..Spot::default()
            };
            grid.0.insert(cell.place, spot);
        }
        let tree = parse(&self.xml)?;
        let root = tree.root_element();
        let merged = child(root, "mergeCells").into_iter();
        let merged = merged.flat_map(|list| children(list, "mergeCell"));
        let merged = merged.map(|node| Range::parse(node.attribute("ref").unwrap_or_default()));
        let merged: Vec<Range> = merged.collect::<Result<_, _>>()?;
        for range in &merged {
            grid.merge(*range);
        }
        let links = child(root, "hyperlinks").into_iter();
        for link in links.flat_map(|list| children(list, "hyperlink")) {
            self.link(&mut grid, link, &merged)?;
        }
        for comment in &self.comments {
            for place in Range::parse(comment)?.places() {
                grid.0.entry(place).or_insert_with(Spot::empty);
            }
        }
        Ok(grid)
    }

    fn link(
        &self,
        grid: &mut Grid,
        node: roxmltree::Node<'_, '_>,
        merged: &[Range],
    ) -> Result<(), MetricError> {
        let target = match relation_id(node) {
            Some(id) => Some(related(&self.relations, id)?.target.as_str()),
            None => None,
        };
        let goal = target.or(node.attribute("location"));
        let has_goal = goal.is_some_and(|goal| !goal.is_empty());
        let range = Range::parse(node.attribute("ref").unwrap_or_default())?;
        let is_one = range.first == range.last;
        for mut place in range.places() {
            if grid.0.get(&place).is_some_and(|spot| spot.is_merged) {
                let holder = merged.iter().find(|merged| {
                    let one = Range {
                        first: place,
                        last: place,
                    };
                    one.is_within(&[**merged])
                });
                match holder.filter(|_| is_one) {
                    Some(holder) => place = holder.first,
                    None => continue,
                }
            }
            let spot = grid.0.entry(place).or_insert_with(Spot::empty);
            let mut link = Map::new();
            link.insert("ref".into(), super::range::coordinate(place).into());
            for name in ["location", "tooltip", "display"] {
                if let Some(text) = node.attribute(name) {
                    link.insert(name.into(), text.into());
                }
            }
            link.insert("id".into(), relation_id(node).into());
            spot.link = Some(link.into());
            if !spot.has_value && has_goal {
                (spot.has_value, spot.is_number) = (true, false);
            }
        }
        Ok(())
    }
}

impl Spot {
    fn empty() -> Self {
        Self {
            is_number: true,
            ..Self::default()
        }
    }
}

impl Grid {
    fn merge(&mut self, range: Range) {
        self.0.entry(range.first).or_insert_with(Spot::empty);
        for place in range.places().skip(1) {
            let spot = Spot {
                is_merged: true,
                ..Spot::empty()
            };
            self.0.insert(place, spot);
        }
    }

    /// A cell; one that is not there is empty.
    pub(super) fn spot(&self, place: Place) -> Spot {
        self.0.get(&place).cloned().unwrap_or_else(Spot::empty)
    }

    /// All cells from the first of the sheet to the last that is there, none where none is.
    pub(super) fn places(&self) -> Result<Vec<Place>, MetricError> {
        let last = self.0.keys().copied();
        let last = last.reduce(|most, place| (most.0.max(place.0), most.1.max(place.1)));
        let Some(last) = last else {
            return Ok(Vec::new());
        };
        if u64::from(last.0) * u64::from(last.1) > MOST {
            return Err(raised("the sheet has too many cells to look at each"));
        }
        let all = Range {
            first: (1, 1),
            last,
        };
        Ok(all.places().collect())
    }
}
