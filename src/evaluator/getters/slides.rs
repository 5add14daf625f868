//! Sounds and pictures of a slide in a presentation on the desktop.
//!
//! Departs: a part of the archive that claims to be larger than 256 MiB is broken.

use std::io::{Cursor, Read as _};

use roxmltree::{Document, Node};
use zip::ZipArchive;

use super::{GetterError, files, raised};
use crate::env::RealDesktop;
use crate::evaluator::found::{Found, FoundFile};
use crate::types::osworld::getter::SlidePart;

/// Largest part that is unpacked, bytes.
const MAX_PART: u64 = 256 << 20;

const RELATIONS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const DRAWING: &str = "http://schemas.openxmlformats.org/drawingml/2006/main";
const SLIDES: &str = "http://schemas.openxmlformats.org/presentationml/2006/main";

/// A presentation.
struct Presentation(ZipArchive<Cursor<Vec<u8>>>);

impl Presentation {
    async fn open(desktop: RealDesktop<'_>, path: &str) -> Result<Self, GetterError> {
        let bytes = files::read(desktop, path).await?;
        let bytes = bytes.ok_or_else(|| raised(format!("there is no {path}")))?;
        let archive = ZipArchive::new(Cursor::new(bytes));
        archive
            .map(Self)
            .map_err(|error| raised(format!("{path}: {error}")))
    }

    /// A part; none where there is none.
    fn part(&mut self, name: &str) -> Result<Option<Vec<u8>>, GetterError> {
        if self.0.index_for_name(name).is_none() {
            return Ok(None);
        }
        let broken = |error: &dyn std::fmt::Display| raised(format!("{name}: {error}"));
        let file = self.0.by_name(name).map_err(|error| broken(&error))?;
        let mut content = Vec::new();
        let read = file.take(MAX_PART).read_to_end(&mut content);
        read.map_err(|error| broken(&error))?;
        Ok(Some(content))
    }

    fn xml(&mut self, name: &str) -> Result<Option<String>, GetterError> {
        let part = self.part(name)?;
        let text = part.map(String::from_utf8).transpose();
        text.map_err(|error| raised(format!("{name}: {error}")))
    }
}

fn parse(text: &str) -> Result<Document<'_>, GetterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Document::parse(text).map_err(|error| raised(error.to_string()))
}

/// `get_audio_in_slide`.
pub(super) async fn audio(
    desktop: RealDesktop<'_>,
    part: &SlidePart,
) -> Result<Found, GetterError> {
    let mut presentation = Presentation::open(desktop, &part.ppt_file_path).await?;
    let target = related(&mut presentation, part.slide_index, "audio", None)?;
    bring(desktop, presentation, target, part).await
}

/// `get_background_image_in_slide`.
pub(super) async fn background_image(
    desktop: RealDesktop<'_>,
    part: &SlidePart,
) -> Result<Found, GetterError> {
    let mut presentation = Presentation::open(desktop, &part.ppt_file_path).await?;
    let name = format!("ppt/slides/slide{}.xml", part.slide_index + 1);
    let Some(slide) = presentation.xml(&name)? else {
        return Ok(Found::NOTHING);
    };
    let Some(id) = background_id(&parse(&slide)?) else {
        return Ok(Found::NOTHING);
    };
    let target = related(&mut presentation, part.slide_index, "image", Some(&id))?;
    bring(desktop, presentation, target, part).await
}

/// By what a slide names the picture of its first background that has one.
fn background_id(slide: &Document<'_>) -> Option<String> {
    let is = |node: &Node<'_, '_>, space: &str, name: &str| node.has_tag_name((space, name));
    let backgrounds = slide.descendants();
    let mut backgrounds = backgrounds.filter(|node| is(node, SLIDES, "bgPr"));
    backgrounds.find_map(|background| {
        let mut pictures = background.descendants();
        let picture = pictures.find(|node| is(node, DRAWING, "blip"))?;
        picture.attribute((OFFICE, "embed")).map(str::to_owned)
    })
}

/// Where the first thing of a kind is that a slide is related to, by its id where that is given.
fn related(
    presentation: &mut Presentation,
    slide: usize,
    kind: &str,
    id: Option<&str>,
) -> Result<Option<String>, GetterError> {
    let name = format!("ppt/slides/_rels/slide{}.xml.rels", slide + 1);
    let Some(text) = presentation.xml(&name)? else {
        return Ok(None);
    };
    let document = parse(&text)?;
    let relations = document.root_element().children();
    for relation in relations.filter(|node| node.has_tag_name((RELATIONS, "Relationship"))) {
        let attribute = |name: &str| {
            let found = relation.attribute(name);
            found.ok_or_else(|| raised(format!("a relation of the slide has no {name}")))
        };
        if attribute("Type")?.contains(kind)
            && id.map_or(Ok(true), |id| attribute("Id").map(|its| its == id))?
        {
            return Ok(Some(attribute("Target")?.to_owned()));
        }
    }
    Ok(None)
}

/// What lies at a target: a part of the presentation, or a file of the desktop.
async fn bring(
    desktop: RealDesktop<'_>,
    mut presentation: Presentation,
    target: Option<String>,
    part: &SlidePart,
) -> Result<Found, GetterError> {
    let Some(target) = target else {
        return Ok(Found::NOTHING);
    };
    if target.starts_with("..") {
        let inside = normal(&format!("ppt/slides/{target}"));
        let bytes = presentation.part(&inside)?;
        let bytes = bytes.ok_or_else(|| raised(format!("there is no {inside} in it")))?;
        let name = inside.rsplit('/').next().unwrap_or_default();
        return Ok(Found::File(FoundFile::new(name, bytes)));
    }
    let path = target.strip_prefix("file://");
    let path = path.ok_or_else(|| raised(format!("{target} is no file's address")))?;
    let bytes = files::read(desktop, path).await?;
    Ok(bytes.map_or(Found::NOTHING, |bytes| {
        Found::File(FoundFile::new(part.dest.as_str(), bytes))
    }))
}

/// `os.path.normpath` of a path below nothing, with slashes.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/").replace('\\', "/")
}
