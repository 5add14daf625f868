//! Workbooks as openpyxl opens them.

use roxmltree::Node;

use super::super::MetricError;
use super::super::package::{Archive, ContentTypes, OFFICE, Relation};
use super::super::python::raised;
use super::cell::{Reading, Row, plain_text};
use super::chart::{self, Chart};
use super::pivot::{self, Pivot};
use super::style::Styles;
use super::view::View;
use super::xml::{child, children, flag_of, int_of, parse};
use crate::evaluator::found::FoundFile;

/// Names of files that openpyxl opens.
const ENDS: [&str; 4] = [".xlsx", ".xlsm", ".xltx", ".xltm"];

/// Kinds of a workbook's main part, in the order in which they are looked for.
const MAIN: [&str; 4] = [
    "application/vnd.ms-excel.template.macroEnabled.main+xml",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml",
    "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
];
const SHARED: &str =
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml";

/// The main part as pandas wants it called.
const WORKBOOK: &str = "xl/workbook.xml";

/// Days from 1899-12-30 to 1904-01-01.
const LATER_EPOCH: i64 = 1462;

/// A workbook.
pub(super) struct Book {
    pub(super) sheets: Vec<Sheet>,
    pub(super) styles: Styles,
    /// Index of the sheet that is on top.
    pub(super) active: usize,
}

/// A sheet of it.
pub(super) struct Sheet {
    pub(super) title: String,
    /// Whether it is nothing but a chart.
    pub(super) is_chart: bool,
    /// Its part, as it is written.
    pub(super) xml: String,
    pub(super) rows: Vec<Row>,
    pub(super) view: View,
    /// What it refers to.
    pub(super) relations: Vec<Relation>,
    /// Coordinates of cells with comments.
    pub(super) comments: Vec<String>,
    pub(super) charts: Vec<Chart>,
    pub(super) pivots: Vec<Pivot>,
}

impl Book {
    /// Opens all of a book: whatever of it is broken breaks it.
    pub(super) fn open(file: &FoundFile) -> Result<Self, MetricError> {
        let name = file.name.to_lowercase();
        if !ENDS.iter().any(|end| name.ends_with(end)) {
            return Err(raised(format!("{:?} is no name of a workbook", file.name)));
        }
        let no_book = || raised(format!("{:?} is no workbook", file.name));
        let mut parts = Parts(Archive::open(&file.bytes).ok_or_else(no_book)?);
        let types = parts.text("[Content_Types].xml")?;
        let types = ContentTypes::read(&types).ok_or_else(no_book)?;
        let shared = match types.first(SHARED) {
            Some(name) => shared_texts(&parts.text(name)?)?,
            None => Vec::new(),
        };
        let main = MAIN.iter().find_map(|kind| types.first(kind));
        let default = MAIN.iter().any(|kind| types.has_default(kind));
        let main = main.or(default.then_some(WORKBOOK)).ok_or_else(no_book)?;
        if !parts.0.has(WORKBOOK) {
            return Err(no_book());
        }
        let text = parts.text(main)?;
        let tree = parse(&text)?;
        let root = tree.root_element();
        let relations = parts.relations(main)?;
        let styles = if parts.0.has("xl/styles.xml") {
            Styles::read(&parts.text("xl/styles.xml")?)?
        } else {
            Styles::none()
        };
        let properties = child(root, "workbookPr");
        let is_later = properties.is_some_and(|node| flag_of(node, "date1904", false));
        let reading = Reading {
            shared: &shared,
            styles: &styles,
            first_day: if is_later { LATER_EPOCH } else { 0 },
        };
        let caches = pivot::caches(&mut parts, root, &relations)?;
        let mut sheets = Vec::new();
        let listed = child(root, "sheets").into_iter();
        for node in listed.flat_map(|list| children(list, "sheet")) {
            let Some(id) = relation_id(node).filter(|id| !id.is_empty()) else {
                continue;
            };
            let relation = related(&relations, id)?;
            if parts.0.has(&relation.target) {
                sheets.push(Sheet::read(&mut parts, node, relation, &reading, &caches)?);
            }
        }
        let active = active(root)?;
        Ok(Self {
            sheets,
            styles,
            active,
        })
    }

    /// Titles of what has cells, in order.
    pub(super) fn titles(&self) -> Vec<&str> {
        let sheets = self.sheets.iter().filter(|sheet| !sheet.is_chart);
        sheets.map(|sheet| sheet.title.as_str()).collect()
    }

    /// The sheet of a title.
    pub(super) fn sheet(&self, title: &str) -> Option<&Sheet> {
        self.sheets.iter().find(|sheet| sheet.title == title)
    }
}

impl Sheet {
    fn read(
        parts: &mut Parts<'_>,
        listed: Node<'_, '_>,
        relation: &Relation,
        reading: &Reading<'_>,
        caches: &[pivot::Cache],
    ) -> Result<Self, MetricError> {
        let xml = parts.text(&relation.target)?;
        let relations = parts.relations(&relation.target)?;
        let is_chart = relation.kind.contains("chartsheet");
        let (rows, view) = {
            let tree = parse(&xml)?;
            let rows = reading.rows(tree.root_element());
            (
                if is_chart { Vec::new() } else { rows? },
                View::read(&tree)?,
            )
        };
        let kind = |kind: &str| {
            let kind = format!("{OFFICE}/{kind}");
            relations
                .iter()
                .filter(move |relation| relation.kind == kind)
        };
        let (mut charts, mut pivots, mut comments) = (Vec::new(), Vec::new(), Vec::new());
        for drawing in kind("drawing") {
            charts.extend(chart::read(parts, &drawing.target)?);
        }
        for table in kind("pivotTable") {
            pivots.push(pivot::read(&parts.text(&table.target)?, caches)?);
        }
        for list in kind("comments") {
            let text = parts.text(&list.target)?;
            let tree = parse(&text)?;
            let nodes = tree
                .descendants()
                .filter(|node| node.tag_name().name() == "comment");
            comments.extend(nodes.filter_map(|node| node.attribute("ref").map(str::to_owned)));
        }
        Ok(Self {
            title: listed.attribute("name").unwrap_or_default().to_owned(),
            is_chart,
            xml,
            rows,
            view,
            relations,
            comments,
            charts,
            pivots,
        })
    }
}

/// A package whose parts have to be there.
pub(super) struct Parts<'a>(pub(super) Archive<'a>);

impl Parts<'_> {
    /// A part.
    pub(super) fn text(&mut self, name: &str) -> Result<String, MetricError> {
        let missing = || raised(format!("part {name:?} is missing or broken"));
        self.0.read_text(name).ok_or_else(missing)
    }

    /// What a part refers to.
    pub(super) fn relations(&mut self, name: &str) -> Result<Vec<Relation>, MetricError> {
        let broken = || raised(format!("what part {name:?} refers to is broken"));
        self.0.relations(name).ok_or_else(broken)
    }
}

/// The id by which an element refers to a part.
pub(super) fn relation_id<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    node.attribute((OFFICE, "id"))
}

/// What an id refers to.
pub(super) fn related<'a>(
    relations: &'a [Relation],
    id: &str,
) -> Result<&'a Relation, MetricError> {
    let found = relations.iter().find(|relation| relation.id == id);
    found.ok_or_else(|| raised(format!("nothing is related as {id:?}")))
}

fn shared_texts(text: &str) -> Result<Vec<String>, MetricError> {
    let tree = parse(text)?;
    let items = tree
        .descendants()
        .filter(|node| node.tag_name().name() == "si");
    Ok(items
        .map(|item| plain_text(item).replace("x005F_", ""))
        .collect())
}

fn active(root: Node<'_, '_>) -> Result<usize, MetricError> {
    let views = child(root, "bookViews").into_iter();
    for view in views.flat_map(|views| children(views, "workbookView")) {
        if let Some(active) = int_of(view, "activeTab")? {
            return Ok(usize::try_from(active).unwrap_or(usize::MAX));
        }
    }
    Ok(0)
}
