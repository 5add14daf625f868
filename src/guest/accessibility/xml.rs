//! XML as OSWorld's server writes it, always well-formed whatever programs tell.

use std::collections::BTreeMap;

/// Prefixes and what they stand for.
const NAMESPACES: [(&str, &str); 8] = [
    ("st", "state"),
    ("attr", "attributes"),
    ("cp", "component"),
    ("doc", "document"),
    ("docattr", "document/attributes"),
    ("txt", "text"),
    ("val", "value"),
    ("act", "action"),
];

const ROOT: &str = "https://accessibility.ubuntu.example.org/ns";

/// An element.
#[derive(Debug, Default)]
pub(super) struct Element {
    tag: String,
    attributes: BTreeMap<String, String>,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Of a role.
    pub(super) fn new(role: &str) -> Self {
        let tag = match role.trim() {
            "" => "unknown".to_owned(),
            role => name(role),
        };
        Self {
            tag,
            ..Self::default()
        }
    }

    /// Sets an attribute; the prefix may be empty, and so is an attribute that is left out.
    pub(super) fn attribute(&mut self, prefix: &str, key: &str, value: impl Into<String>) {
        if key.is_empty() {
            return;
        }
        let key = match prefix {
            "" => name(key),
            prefix => format!("{prefix}:{}", name(key)),
        };
        self.attributes.insert(key, value.into());
    }

    /// The whole of it.
    pub(super) fn document(mut self) -> String {
        for (prefix, what) in NAMESPACES {
            self.attributes
                .insert(format!("xmlns:{prefix}"), format!("{ROOT}/{what}"));
        }
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(&self.tag);
        for (key, value) in &self.attributes {
            out.push(' ');
            out.push_str(key);
            out.push_str("=\"");
            escape(value, out);
            out.push('"');
        }
        if self.text.is_empty() && self.children.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        escape(&self.text, out);
        for child in &self.children {
            child.write(out);
        }
        out.push_str("</");
        out.push_str(&self.tag);
        out.push('>');
    }
}

/// What XML takes for a name.
fn name(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_alphanumeric() => c,
        '-' | '_' | '.' => c,
        _ => '-',
    };
    let name: String = text.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        name
    } else {
        format!("_{name}")
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader makes blanks of them in attributes.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Element;

    #[test]
    fn whatever_is_told_is_xml() {
        let mut root = Element::new("desktop-frame");
        let mut child = Element::new("push button (2)");
        child.attribute("", "name", "a<b>&\"c\"\n\u{0}\u{1b}é");
        child.attribute("attr", "xml:lang", "de");
        child.attribute("attr", "1 st", "x");
        child.attribute("attr", "", "left out");
        child.text = "x\ty".to_owned();
        root.children = vec![child, Element::new("  ")];
        let text = root.document();
        let read = roxmltree::Document::parse(&text).unwrap();
        let nodes: Vec<_> = read.root_element().children().collect();
        assert_eq!(nodes[0].tag_name().name(), "push-button--2-");
        assert_eq!(nodes[0].attribute("name"), Some("a<b>&\"c\"\né"));
        let attributes = "https://accessibility.ubuntu.example.org/ns/attributes";
        assert_eq!(nodes[0].attribute((attributes, "xml-lang")), Some("de"));
        assert_eq!(nodes[0].attribute((attributes, "_1-st")), Some("x"));
        assert_eq!(nodes[0].attributes().len(), 3);
        assert_eq!(nodes[0].text(), Some("x\ty"));
        assert_eq!(nodes[1].tag_name().name(), "unknown");
    }
}
