//! Metrics over how a document looks.

use std::collections::BTreeSet;

use roxmltree::Node;
use serde_json::Value;

use super::super::python::{self, raised};
use super::super::{Call, MetricError, rule, score};
use super::content::say_the_same;
use super::package::Package;
use super::paragraph::{self, Paragraph, Run, TabStop, attribute, child, children, is, paragraphs};
use super::{both, one, one_of_the_same_words};

/// Page breaks: as many as `page_break_count`, or any.
pub(in crate::evaluator::metrics) fn contains_page_break(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one(call)? else {
        return Ok(0.0);
    };
    let tree = document.document()?;
    let paragraphs = paragraphs(&tree)?;
    let runs = paragraphs.iter().flat_map(Paragraph::runs);
    let is_break = |node: &Node<'_, '_>| is(node, "br") && attribute(*node, "type") == Some("page");
    let count = runs
        .flat_map(|run| run.0.descendants().skip(1))
        .filter(is_break)
        .count();
    let expected = call
        .rules()?
        .get("page_break_count")
        .filter(|count| !count.is_null());
    let is_right = expected.is_none_or(|expected| python::equal(expected, &count.into()));
    Ok(score(count > 0 && is_right))
}

/// The paragraphs of two documents, which say the same, are as far apart.
pub(in crate::evaluator::metrics) fn compare_line_spacing(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    if !say_the_same(call)? {
        return Ok(0.0);
    }
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let (found, expected) = (found.document()?, expected.document()?);
    let (found, expected) = (paragraphs(&found)?, paragraphs(&expected)?);
    if found.len() != expected.len() {
        return Ok(0.0);
    }
    for (found, expected) in found.iter().zip(&expected) {
        if found.line_spacing()? != expected.line_spacing()? {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// Runs of two documents, those of the same place side by side.
fn any_pair(
    call: &Call<'_>,
    test: impl Fn(Run<'_, '_>, Run<'_, '_>) -> Result<bool, MetricError>,
) -> Result<bool, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(false);
    };
    let (found, expected) = (found.document()?, expected.document()?);
    for (found, expected) in paragraphs(&found)?.iter().zip(&paragraphs(&expected)?) {
        for (found, expected) in found.runs().zip(expected.runs()) {
            if test(found, expected)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Some run is a subscript in both documents.
pub(in crate::evaluator::metrics) fn compare_subscript_contains(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let is_met = any_pair(call, |found, expected| {
        Ok(found.is_subscript()? && expected.is_subscript()?)
    });
    Ok(score(is_met?))
}

/// Some run holds an object in both documents, which say the same.
pub(in crate::evaluator::metrics) fn compare_insert_equation(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    if !say_the_same(call)? {
        return Ok(0.0);
    }
    let has = |run: Run<'_, '_>| run.0.descendants().any(|node| is(&node, "object"));
    Ok(score(any_pair(call, |found, expected| {
        Ok(has(found) && has(expected))
    })?))
}

/// Pictures stand at the same runs of both documents.
pub(in crate::evaluator::metrics) fn compare_contains_image(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    if both(call)?.is_none() {
        return Ok(0.0);
    }
    let has =
        |run: Run<'_, '_>| run.0.document().input_text()[run.0.range()].contains("graphicData");
    Ok(score(!any_pair(call, |found, expected| {
        Ok(has(found) != has(expected))
    })?))
}

/// All runs of a document pass a test.
fn all_runs(
    package: &Package,
    test: impl Fn(Run<'_, '_>) -> Result<bool, MetricError>,
) -> Result<bool, MetricError> {
    let tree = package.document()?;
    for run in paragraphs(&tree)?.iter().flat_map(Paragraph::runs) {
        if !test(run)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// All runs are in the font `font_name`.
pub(in crate::evaluator::metrics) fn compare_font_names(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one(call)? else {
        return Ok(0.0);
    };
    let expected = rule::entry(call.rules()?, "font_name")?;
    let is_in_it = |run: Run<'_, '_>| Ok(run.font_name() == expected.as_str());
    Ok(score(all_runs(&document, is_in_it)?))
}

/// Italics are of 14 points, in a document that says the same as the other.
pub(in crate::evaluator::metrics) fn check_italic_font_size_14(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one_of_the_same_words(call)? else {
        return Ok(0.0);
    };
    let is_right = |run: Run<'_, '_>| Ok(!run.is_on("i")? || run.size()? == Some(14.0));
    Ok(score(all_runs(&document, is_right)?))
}

/// The last paragraph is struck through, in a document that says the same as the other.
pub(in crate::evaluator::metrics) fn evaluate_strike_through_last_paragraph(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one_of_the_same_words(call)? else {
        return Ok(0.0);
    };
    let tree = document.document()?;
    let paragraphs = paragraphs(&tree)?;
    let last = paragraphs
        .last()
        .ok_or_else(|| raised("there is no paragraph"))?;
    for run in last.runs() {
        if !run.is_on("strike")? {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// The first paragraph is centered.
pub(in crate::evaluator::metrics) fn is_first_line_centered(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one(call)? else {
        return Ok(0.0);
    };
    let tree = document.document()?;
    let paragraphs = paragraphs(&tree)?;
    let first = paragraphs
        .first()
        .ok_or_else(|| raised("there is no paragraph"))?;
    Ok(score(first.alignment()? == Some("center")))
}

/// The first three paragraphs have single, double and one and a half spacing.
pub(in crate::evaluator::metrics) fn evaluate_spacing(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some(document) = one(call)? else {
        return Ok(0.0);
    };
    let tree = document.document()?;
    let paragraphs = paragraphs(&tree)?;
    let first = paragraphs
        .get(..3)
        .ok_or_else(|| raised("there are no three paragraphs"))?;
    let spacings: Result<Vec<Option<f64>>, _> = first.iter().map(Paragraph::line_spacing).collect();
    Ok(score(spacings? == [Some(1.0), Some(2.0), Some(1.5)]))
}

/// Sections of a document, as their properties.
fn sections<'a, 'i>(tree: &'a roxmltree::Document<'i>) -> Vec<Node<'a, 'i>> {
    let mut found = Vec::new();
    let body = child(tree.root_element(), "body");
    for part in body.iter().flat_map(Node::children) {
        if is(&part, "p") {
            found.extend(child(part, "pPr").and_then(|properties| child(properties, "sectPr")));
        } else if is(&part, "sectPr") {
            found.push(part);
        }
    }
    found
}

/// Each section's footer has a digit in its first paragraph. Departs: fractions and numerals that
/// are no digits count too.
pub(in crate::evaluator::metrics) fn has_page_numbers_in_footers(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one(call)? else {
        return Ok(0.0);
    };
    let tree = document.document()?;
    let mut text = String::new();
    for section in sections(&tree) {
        let mut footers = children(section, "footerReference");
        let footer = footers.find(|footer| attribute(*footer, "type") == Some("default"));
        // Without one of its own a section has that of the section before; the first has none.
        if let Some(footer) = footer {
            let id = paragraph::reference(footer).ok_or_else(|| raised("a footer without id"))?;
            let footer = document.related(id)?;
            let first = child(footer.root_element(), "p").map(Paragraph);
            text = first.as_ref().map(Paragraph::text).unwrap_or_default();
        }
        if !text.chars().any(char::is_numeric) {
            return Ok(0.0);
        }
    }
    Ok(1.0)
}

/// Tab stops stand alike: 1 less what they are off, in page widths a paragraph. With
/// `word_number_split_by_tabstop` the part `index` of each paragraph has as many words. Departs: 0
/// where that would be negative.
pub(in crate::evaluator::metrics) fn check_tabstops(call: &Call<'_>) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let (found, expected) = (found.document()?, expected.document()?);
    let width_of = &expected;
    let filled = |tree| -> Result<Vec<Paragraph<'_, '_>>, MetricError> {
        let mut filled = paragraphs(tree)?;
        filled.retain(|one| !python::strip(&one.text()).is_empty());
        Ok(filled)
    };
    let (found, expected) = (filled(&found)?, filled(&expected)?);
    if found.len() != expected.len() || !has_words(call, &found)? {
        return Ok(0.0);
    }
    let width = text_width(width_of)?;
    let mut off = 0.0;
    for (found, expected) in found.iter().zip(&expected) {
        let (found, expected) = (kept_stops(found)?, kept_stops(expected)?);
        let pairs = || found.iter().zip(&expected);
        let is_alike = pairs().all(|(found, expected)| found.alignment == expected.alignment);
        if found.len() != expected.len() || !is_alike {
            return Ok(0.0);
        }
        let emu: f64 = pairs()
            .map(|(found, expected)| (found.position - expected.position).abs())
            .sum();
        if width == 0.0 {
            return Err(raised("the page has no width"));
        }
        off += emu / width;
    }
    if found.is_empty() {
        return Err(raised("there are no paragraphs to compare"));
    }
    Ok((1.0 - off / found.len() as f64).max(0.0))
}

fn has_words(call: &Call<'_>, found: &[Paragraph<'_, '_>]) -> Result<bool, MetricError> {
    let option = |name: &str| call.options.get(name).filter(|value| !value.is_null());
    let Some(number) = option("word_number_split_by_tabstop") else {
        return Ok(true);
    };
    let index = option("index").map_or(Some(0), Value::as_u64);
    let index = index.ok_or_else(|| MetricError::Rules("\"index\" is no number from 0".into()))?;
    for one in found {
        let text = one.text();
        let part = text.split('\t').nth(index as usize);
        let part = part.ok_or_else(|| raised("a paragraph with too few parts"))?;
        if !python::equal(number, &python::words(part).count().into()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Stops but for those that clear one and the default one at the margin.
fn kept_stops<'a>(paragraph: &Paragraph<'a, '_>) -> Result<Vec<TabStop<'a>>, MetricError> {
    let mut stops = paragraph.tab_stops()?;
    stops.retain(|stop| {
        stop.alignment != "clear" && !(stop.alignment == "left" && stop.position == 0.0)
    });
    Ok(stops)
}

/// EMU between the margins of the first section.
fn text_width(tree: &roxmltree::Document<'_>) -> Result<f64, MetricError> {
    let sections = sections(tree);
    let first = *sections
        .first()
        .ok_or_else(|| raised("the document has no section"))?;
    let read = |element, name| {
        let missing = || raised(format!("the page has no {name:?}"));
        let value = child(first, element).and_then(|element| attribute(element, name));
        value.ok_or_else(missing)
    };
    let width = paragraph::length(read("pgSz", "w")?)?;
    let left = paragraph::length(read("pgMar", "left")?)?;
    let right = paragraph::length(read("pgMar", "right")?)?;
    Ok(width - left - right)
}

/// The same texts are highlighted in both documents, run by run. Broken ones have no score.
pub(in crate::evaluator::metrics) fn compare_highlighted_text(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    if call.file()?.is_none() || call.expected_file()?.is_none() {
        return Ok(0.0);
    }
    let (found, expected) = both(call)?.ok_or_else(|| raised("not two documents"))?;
    let highlighted = |package: &Package| -> Result<BTreeSet<String>, MetricError> {
        let tree = package.document()?;
        let mut texts = BTreeSet::new();
        for run in tree.descendants().filter(|node| is(node, "r")) {
            let first = |name| run.descendants().skip(1).find(|node| is(node, name));
            let color = first("highlight").map(|mark| attribute(mark, "val"));
            if let (Some(color), Some(text)) = (color, first("t"))
                && color != Some("none")
            {
                texts.insert(text.text().unwrap_or_default().to_owned());
            }
        }
        Ok(texts)
    };
    Ok(score(highlighted(&found)? == highlighted(&expected)?))
}
