//! Metrics over what a document says.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::image::Picture;
use super::super::python::{self, raised};
use super::super::{Call, MetricError, likeness, rule, score};
use super::package::Package;
use super::paragraph::texts;
use super::{both, one};
use crate::evaluator::found::{Found, FoundFile};

/// Two documents show the same pictures in the same order, pixel by pixel.
pub(in crate::evaluator::metrics) fn compare_docx_images(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let (found, expected) = (found.pictures()?, expected.pictures()?);
    if found.len() != expected.len() {
        return Ok(0.0);
    }
    for (found, expected) in found.into_iter().zip(expected) {
        if Picture::open(found)?.pixels() != Picture::open(expected)?.pixels() {
            return Ok(0.0);
        }
    }
    Ok(score(true))
}

/// Two documents say the same. Departs: of `.odt` files, which no task of OSWorld's brings here,
/// there is no score.
pub(in crate::evaluator::metrics) fn compare_docx_files(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let (Some(found), Some(expected)) = (call.file()?, call.expected_file()?) else {
        return Ok(0.0);
    };
    if both_end(found, expected, ".odt") {
        return Err(raised("the texts of .odt files are not compared"));
    }
    if !both_end(found, expected, ".docx") {
        return Ok(0.0);
    }
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let found = prepared(call, texts(&found.document()?)?);
    let expected = prepared(call, texts(&expected.document()?)?);
    let ignore_blanks = call
        .options
        .get("ignore_blanks")
        .is_none_or(python::is_true);
    let is_fuzzy = call.is_on("fuzzy_match");
    if call.is_on("content_only") || ignore_blanks {
        let (found, expected) = (
            python::squeeze(&found.join("\n")),
            python::squeeze(&expected.join("\n")),
        );
        let (found, expected) = (cased(call, found), cased(call, expected));
        if call.is_on("content_only") || is_fuzzy {
            return Ok(likeness::ratio(&found, &expected));
        }
        return Ok(score(found == expected));
    }
    if found.len() != expected.len() {
        return Ok(0.0);
    }
    let pairs = found.into_iter().zip(expected);
    let mut pairs = pairs.map(|(found, expected)| (cased(call, found), cased(call, expected)));
    if !is_fuzzy {
        return Ok(score(pairs.all(|(found, expected)| found == expected)));
    }
    let likenesses: Vec<f64> = pairs
        .map(|(found, expected)| likeness::ratio(&found, &expected))
        .collect();
    if likenesses.is_empty() {
        return Ok(1.0);
    }
    Ok(likenesses.iter().sum::<f64>() / likenesses.len() as f64)
}

fn both_end(found: &FoundFile, expected: &FoundFile, end: &str) -> bool {
    found.name.ends_with(end) && expected.name.ends_with(end)
}

fn prepared(call: &Call<'_>, mut texts: Vec<String>) -> Vec<String> {
    if call.is_on("ignore_order") {
        texts.sort();
    }
    if call.is_on("delete_empty_lines") {
        texts.retain(|text| !python::strip(text).is_empty());
    }
    texts
}

fn cased(call: &Call<'_>, text: String) -> String {
    if call.is_on("ignore_case") {
        text.to_lowercase()
    } else {
        text
    }
}

/// The same without options, which other metrics begin with.
pub(super) fn say_the_same(call: &Call<'_>) -> Result<bool, MetricError> {
    let plain = Call {
        options: &serde_json::Map::new(),
        ..*call
    };
    Ok(compare_docx_files(&plain)? != 0.0)
}

/// Two documents say the same but for empty paragraphs.
pub(in crate::evaluator::metrics) fn compare_docx_files_and_ignore_new_lines(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both_by_name(call)? else {
        return Ok(0.0);
    };
    let read = |package: &Package| -> Result<Vec<String>, MetricError> {
        let mut texts = texts(&package.document()?)?;
        texts.retain(|text| !text.is_empty());
        Ok(texts)
    };
    let (found, expected) = (read(&found)?, read(&expected)?);
    if call
        .options
        .get("ignore_blanks")
        .is_none_or(python::is_true)
    {
        let (found, expected) = (found.join("\n"), expected.join("\n"));
        return Ok(score(python::squeeze(&found) == python::squeeze(&expected)));
    }
    Ok(score(found == expected))
}

/// Both documents where both are called `.docx`.
fn both_by_name(call: &Call<'_>) -> Result<Option<(Package, Package)>, MetricError> {
    let (Some(found), Some(expected)) = (call.file()?, call.expected_file()?) else {
        return Ok(None);
    };
    if !both_end(found, expected, ".docx") {
        return Ok(None);
    }
    both(call)
}

/// Two documents begin the same: one may go on longer.
pub(in crate::evaluator::metrics) fn compare_init_lines(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let (found, expected) = (texts(&found.document()?)?, texts(&expected.document()?)?);
    Ok(score(
        found
            .iter()
            .zip(&expected)
            .all(|(found, expected)| found == expected),
    ))
}

/// Two documents have the same set of lines.
pub(in crate::evaluator::metrics) fn compare_docx_lines(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both(call)? else {
        return Ok(0.0);
    };
    let set = |package: &Package| -> Result<BTreeSet<String>, MetricError> {
        Ok(lines(package)?.into_iter().collect())
    };
    Ok(score(set(&found)? == set(&expected)?))
}

/// Paragraphs that are not empty, without blanks around them.
fn lines(package: &Package) -> Result<Vec<String>, MetricError> {
    let texts = texts(&package.document()?)?;
    let lines = texts.iter().map(|text| python::strip(text).to_owned());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}

/// A document has three words, each as like as may be to one of `expected`.
pub(in crate::evaluator::metrics) fn fuzzy_place_math(call: &Call<'_>) -> Result<f64, MetricError> {
    if call.file()?.is_none() {
        return Ok(0.0);
    }
    let expected = rule::entry(call.rules()?, "expected")?;
    let answers = super::super::values::strings(expected)?;
    let document = one(call)?.ok_or_else(|| raised("not a document"))?;
    let texts = texts(&document.document()?)?;
    let words = texts.iter().flat_map(|text| python::words(text));
    let best = words.map(|word| {
        let likenesses = answers.iter().map(|answer| likeness::ratio(word, answer));
        likenesses.fold(0.0, f64::max)
    });
    let best: Vec<f64> = best.collect();
    Ok(if best.len() == 3 {
        best.iter().sum::<f64>() / 3.0
    } else {
        0.0
    })
}

/// The entries after a heading are alike, beyond `reference_base_result`.
pub(in crate::evaluator::metrics) fn compare_references(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some((found, expected)) = both_by_name(call)? else {
        return Ok(0.0);
    };
    let heading = call.options.get("reference_indicator");
    let heading = heading
        .map_or(Some("References"), Value::as_str)
        .unwrap_or_default();
    let base = call
        .options
        .get("reference_base_result")
        .map_or(Some(0.5), python::worth);
    let base =
        base.ok_or_else(|| MetricError::Rules("\"reference_base_result\" is no number".into()))?;
    let entries = |package: &Package| -> Result<Option<Vec<String>>, MetricError> {
        let texts = texts(&package.document()?)?;
        let at = texts.iter().position(|text| text == heading);
        let after = at.map(|at| texts[at + 1..].to_vec());
        Ok(after.map(|mut entries| {
            entries.retain(|entry| !python::strip(entry).is_empty());
            entries
        }))
    };
    match (entries(&found)?, entries(&expected)?) {
        (None, None) => Ok(1.0),
        (Some(found), Some(expected)) if found.len() == expected.len() => {
            if found.is_empty() {
                return Err(raised("there are no references to compare"));
            }
            let pairs = found.iter().zip(&expected);
            let total: f64 = pairs
                .map(|(found, expected)| likeness::ratio(found, expected))
                .sum();
            let likeness = total / found.len() as f64;
            let is_beyond = likeness >= base + 0.01;
            Ok(if is_beyond {
                (likeness - base) / (1.0 - base)
            } else {
                0.0
            })
        }
        _ => Ok(0.0),
    }
}

/// Train numbers of a list, the second of four fields of a line.
fn train_ids(lines: &[String]) -> Vec<&str> {
    let fields = lines.iter().map(|line| line.split(',').collect::<Vec<_>>());
    let full = fields.filter(|fields| fields.len() == 4);
    full.map(|fields| python::strip(fields[1])).collect()
}

/// A list of trains is cleared of all but one record each: all its lines stand in the initial
/// file (the second expected one), its trains are those of the gold one (the first).
pub(in crate::evaluator::metrics) fn compare_unique_train_records(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Found::Many(expected) = call.expected else {
        return Ok(0.0);
    };
    let [Found::File(gold), Found::File(initial), ..] = expected.as_slice() else {
        return Ok(0.0);
    };
    let Some(found) = call.file()? else {
        return Ok(0.0);
    };
    let mut read = Vec::new();
    for file in [found, gold, initial] {
        // Whatever is wrong in a document is caught there.
        let Some(Ok(lines)) = Package::open(&file.bytes).map(|package| lines(&package)) else {
            return Ok(0.0);
        };
        read.push(lines);
    }
    let (found, gold, initial) = (&read[0], &read[1], &read[2]);
    let (ids, gold_ids) = (train_ids(found), train_ids(gold));
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    let is_met = found.iter().all(|line| initial.contains(line))
        && unique.len() == ids.len()
        && unique == gold_ids.into_iter().collect()
        && found.len() == gold.len();
    Ok(score(is_met))
}

/// A list of trains, the expected file, holds each train of the other once. The getters stand the
/// other way round: what there was is the result.
pub(in crate::evaluator::metrics) fn check_no_duplicates(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let (Some(initial), Some(found)) = (call.file()?, call.expected_file()?) else {
        return Ok(0.0);
    };
    let Some(found) = Package::open(&found.bytes) else {
        return Ok(0.0);
    };
    let initial = match Package::open(&initial.bytes) {
        Some(package) => texts(&package.document()?)?,
        None => Vec::new(),
    };
    let found = texts(&found.document()?)?;
    let set =
        |ids: &[&str]| -> BTreeSet<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
    let (ids, unique) = (train_ids(&found), set(&train_ids(&found)));
    Ok(score(
        unique.len() == ids.len() && unique == set(&train_ids(&initial)),
    ))
}

/// In each sentence the first three words, and the rest, stand with one blank between words, and in
/// this order.
pub(in crate::evaluator::metrics) fn evaluate_alignment(
    call: &Call<'_>,
) -> Result<f64, MetricError> {
    let Some(document) = one(call)? else {
        return Ok(0.0);
    };
    for text in texts(&document.document()?)? {
        for sentence in text.split('.') {
            let words: Vec<&str> = python::words(sentence).collect();
            if words.len() < 3 {
                continue;
            }
            let (first, rest) = (words[..3].join(" "), words[3..].join(" "));
            let places = sentence.find(&first).zip(sentence.find(&rest));
            if places.is_none_or(|(first, rest)| first >= rest) {
                return Ok(0.0);
            }
        }
    }
    Ok(1.0)
}
