//! Elements of presentations by namespace and name.

use roxmltree::Node;

use super::super::MetricError;
use super::super::python::raised;

/// The namespace of presentations.
pub(super) const P: &str = "http://schemas.openxmlformats.org/presentationml/2006/main";
/// The namespace of drawings and texts.
pub(super) const A: &str = "http://schemas.openxmlformats.org/drawingml/2006/main";
/// The namespace of references to other parts.
pub(super) const R: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// Whether an element is the one of a name.
pub(super) fn is(node: &Node<'_, '_>, space: &'static str, name: &str) -> bool {
    node.is_element() && node.has_tag_name((space, name))
}

/// Children of a name.
pub(super) fn children<'a, 'i>(
    node: Node<'a, 'i>,
    space: &'static str,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| is(child, space, name))
}

/// The first child of a name.
pub(super) fn child<'a, 'i>(
    node: Node<'a, 'i>,
    space: &'static str,
    name: &'static str,
) -> Option<Node<'a, 'i>> {
    children(node, space, name).next()
}

/// The first child of a name, which there has to be.
pub(super) fn required<'a, 'i>(
    node: Node<'a, 'i>,
    space: &'static str,
    name: &'static str,
) -> Result<Node<'a, 'i>, MetricError> {
    let found = child(node, space, name);
    found.ok_or_else(|| raised(format!("{:?} without {name:?}", node.tag_name().name())))
}

/// What stands below an element, without itself.
pub(super) fn below<'a, 'i>(
    node: Node<'a, 'i>,
    space: &'static str,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    node.descendants()
        .skip(1)
        .filter(move |node| is(node, space, name))
}
