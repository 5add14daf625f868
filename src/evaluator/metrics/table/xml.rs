//! Elements by their local names, and attributes as openpyxl reads them.

use roxmltree::{Document, Node};

use super::super::MetricError;
use super::super::package::bare;
use super::super::python::{self, raised};

/// A part's XML.
pub(super) fn parse(text: &str) -> Result<Document<'_>, MetricError> {
    Document::parse(bare(text)).map_err(|error| raised(format!("not XML: {error}")))
}

/// Children of a name.
pub(super) fn children<'a, 'i: 'a>(
    node: Node<'a, 'i>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children()
        .filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// The first of them.
pub(super) fn child<'a, 'i: 'a>(node: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    children(node, name).next()
}

/// What lies at the end of a path of names.
pub(super) fn at<'a, 'i: 'a>(node: Node<'a, 'i>, path: &[&'static str]) -> Option<Node<'a, 'i>> {
    path.iter().try_fold(node, |node, name| child(node, name))
}

/// A flag: all but three texts are true.
pub(super) fn flag(text: &str) -> bool {
    !matches!(text, "false" | "f" | "0")
}

/// A flag that an attribute says.
pub(super) fn flag_of(node: Node<'_, '_>, name: &str, default: bool) -> bool {
    node.attribute(name).map_or(default, flag)
}

/// A whole number that an attribute says.
pub(super) fn int_of(node: Node<'_, '_>, name: &str) -> Result<Option<i64>, MetricError> {
    let wrong = |text: &str| raised(format!("{name} is {text:?}, which is no number"));
    let text = node.attribute(name);
    text.map(|text| python::strip(text).parse().map_err(|_| wrong(text)))
        .transpose()
}

/// A number that an attribute says.
pub(super) fn float_of(node: Node<'_, '_>, name: &str) -> Result<Option<f64>, MetricError> {
    let wrong = |text: &str| raised(format!("{name} is {text:?}, which is no number"));
    let text = node.attribute(name);
    text.map(|text| python::parse_float(text).ok_or_else(|| wrong(text)))
        .transpose()
}
