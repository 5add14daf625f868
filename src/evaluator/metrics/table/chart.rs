//! Charts of a sheet.

use roxmltree::Node;
use serde_json::{Value, json};

use super::super::MetricError;
use super::super::python::raised;
use super::book::{Parts, related, relation_id};
use super::xml::{at, child, children, int_of, parse};

/// What plots are called.
const KINDS: [&str; 16] = [
    "areaChart",
    "area3DChart",
    "lineChart",
    "line3DChart",
    "stockChart",
    "radarChart",
    "scatterChart",
    "pieChart",
    "pie3DChart",
    "doughnutChart",
    "barChart",
    "bar3DChart",
    "ofPieChart",
    "surfaceChart",
    "surface3DChart",
    "bubbleChart",
];

/// Centimetres that openpyxl gives every chart it reads.
const SIZE: (f64, f64) = (15.0, 7.5);

/// A chart, with the properties that rules may name.
pub(super) struct Chart {
    /// Ranges of values and categories of all series.
    pub(super) source: String,
    kind: &'static str,
    direction: Option<String>,
    legend: Value,
    /// None where the chart is not anchored at two cells, which raises there.
    anchor: Option<Value>,
    title: Value,
    /// Titles of the axes x, y, z.
    axes: [Value; 3],
}

impl Chart {
    /// One property.
    pub(super) fn property(&self, name: &str) -> Result<Option<Value>, MetricError> {
        let missing = || raised(format!("a {} has no {name}", self.kind));
        Ok(Some(match name {
            "title" => self.title.clone(),
            "legend" => self.legend.clone(),
            "anchor" => self.anchor.clone().ok_or_else(missing)?,
            "width" => SIZE.0.into(),
            "height" => SIZE.1.into(),
            "type" => self.kind.into(),
            "direction" => self.direction.as_deref().ok_or_else(missing)?.into(),
            "xtitle" => self.axes[0].clone(),
            "ytitle" => self.axes[1].clone(),
            "ztitle" => self.axes[2].clone(),
            _ => return Ok(None),
        }))
    }

    /// A plot area's first plot, which is what openpyxl takes for the chart.
    fn read(chart: Node<'_, '_>, anchor: Option<Value>) -> Result<Self, MetricError> {
        let area = child(chart, "plotArea").ok_or_else(|| raised("a chart has no plot area"))?;
        let mut plots = area.children().filter_map(|node| {
            let kind = KINDS.iter().find(|kind| node.tag_name().name() == **kind);
            Some((node, *kind?))
        });
        let (plot, kind) = plots
            .next()
            .ok_or_else(|| raised("a chart plots nothing"))?;
        let mut series = Vec::new();
        for node in children(plot, "ser") {
            let order = child(node, "order").map(|order| int_of(order, "val"));
            series.push((order.transpose()?.flatten().unwrap_or(0), source(node)));
        }
        series.sort_by_key(|(order, _)| *order);
        let series: Vec<String> = series.into_iter().map(|(_, source)| source).collect();
        let direction = child(plot, "barDir").and_then(|node| node.attribute("val"));
        let direction = kind.starts_with("bar").then(|| direction.unwrap_or("col"));
        let legend = child(chart, "legend").map(|legend| {
            let place = child(legend, "legendPos");
            place.map_or("r".into(), |place| place.attribute("val").into())
        });
        Ok(Self {
            source: series.join(";"),
            kind,
            direction: direction.map(str::to_owned),
            legend: legend.unwrap_or_default(),
            anchor,
            title: title(chart),
            axes: axes(area, plot, kind)?,
        })
    }
}

/// Ranges that a series takes values and categories from. Points of scatter and bubble charts are
/// neither, as there.
fn source(series: Node<'_, '_>) -> String {
    let range = |name| {
        let data = child(series, name);
        let range = |kind| data.and_then(|data| at(data, &[kind, "f"]));
        let range = range("numRef").or_else(|| range("strRef"));
        range.and_then(|range| range.text()).unwrap_or_default()
    };
    format!("{},{}", range("val"), range("cat"))
}

/// What the first run of a title says, null where there is no title.
fn title(titled: Node<'_, '_>) -> Value {
    let Some(title) = child(titled, "title") else {
        return Value::Null;
    };
    let run = at(title, &["tx", "rich", "p", "r", "t"]);
    // An element without text is `None` there, made a text.
    run.map_or("", |run| run.text().unwrap_or("None")).into()
}

/// Titles of the axes that a plot names.
fn axes(area: Node<'_, '_>, plot: Node<'_, '_>, kind: &str) -> Result<[Value; 3], MetricError> {
    let id = |node| child(node, "axId").and_then(|id| id.attribute("val"));
    let names = ["valAx", "catAx", "dateAx", "serAx"];
    let is_axis = |node: &Node<'_, '_>| names.contains(&node.tag_name().name());
    let axes: Vec<Node<'_, '_>> = area.children().filter(is_axis).collect();
    let mut titles = [Value::Null, Value::Null, Value::Null];
    for (place, named) in children(plot, "axId").enumerate() {
        let axis = axes.iter().rev();
        let axis = axis
            .copied()
            .find(|axis| id(*axis) == named.attribute("val"));
        let Some(axis) = axis else {
            if kind.contains("3D") {
                continue;
            }
            return Err(raised(format!("a {kind} has an axis that is none")));
        };
        let place = match axis.tag_name().name() {
            _ if ["scatterChart", "bubbleChart"].contains(&kind) => place,
            "catAx" | "dateAx" => 0,
            "valAx" => 1,
            _ => 2,
        };
        if let Some(slot) = titles.get_mut(place) {
            *slot = title(axis);
        }
    }
    Ok(titles)
}

/// All charts of a drawing, those anchored at two cells last.
pub(super) fn read(parts: &mut Parts<'_>, drawing: &str) -> Result<Vec<Chart>, MetricError> {
    let text = parts.text(drawing)?;
    let relations = parts.relations(drawing)?;
    let tree = parse(&text)?;
    let mut charts = Vec::new();
    for kind in ["absoluteAnchor", "oneCellAnchor", "twoCellAnchor"] {
        for anchor in children(tree.root_element(), kind) {
            let path = ["graphicFrame", "graphic", "graphicData", "chart"];
            let Some(id) = at(anchor, &path).and_then(relation_id) else {
                continue;
            };
            let text = parts.text(&related(&relations, id)?.target)?;
            let tree = parse(&text)?;
            let chart = child(tree.root_element(), "chart");
            let chart = chart.ok_or_else(|| raised("a chart's part has no chart"))?;
            let place = (kind == "twoCellAnchor").then(|| place(anchor));
            charts.push(Chart::read(chart, place)?);
        }
    }
    Ok(charts)
}

/// Where a chart lies, with the end's row in place of the first one, as there.
fn place(anchor: Node<'_, '_>) -> Value {
    let number = |path: &[&'static str]| {
        let number = at(anchor, path).and_then(|node| node.text());
        number.and_then(|number| number.trim().parse::<i64>().ok())
    };
    let (column, row) = (number(&["to", "col"]), number(&["to", "row"]));
    json!([
        anchor.attribute("editAs"),
        number(&["from", "col"]),
        row,
        column,
        row
    ])
}
