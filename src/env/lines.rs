//! Lines out of what somebody writes who is not trusted: cut where they are too long, without what
//! would command a terminal.

/// Characters of a line that are kept.
const MAX_CHARS: usize = 400;

/// Bytes of a line that are waited for: what comes after them begins another.
const MAX_BYTES: usize = 4096;

/// A text on one line: its control characters are blanks, and its end is left out where it is long.
pub(super) fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let plain = text.chars();
    let plain = plain.map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.collect();
    plain.trim_end().chars().take(MAX_CHARS).collect()
}

/// Bytes as they come, made lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// The lines that these bytes end. Empty ones are left out.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut ended = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_BYTES.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                ended.extend(self.rest());
            }
        }
        ended
    }

    /// What has no end yet.
    pub(super) fn rest(&mut self) -> Option<String> {
        let line = plain(&std::mem::take(&mut self.begun));
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, MAX_CHARS, plain};

    #[test]
    fn a_line_commands_nothing_and_ends() {
        let long = "ä".repeat(3 * MAX_CHARS);
        let cut = "ä".repeat(MAX_CHARS);
        let table: [(&[u8], &str); 4] = [
            (b"a\x1b[31mb\x07\r\n", "a [31mb"),
            (b"\xffx", "\u{fffd}x"),
            (long.as_bytes(), &cut),
            (b" \n", ""),
        ];
        for (text, expected) in table {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn lines_are_put_together_from_parts() {
        let mut lines = Lines::default();
        let mut came = Vec::new();
        let endless = vec![b'y'; 100_000];
        let parts: [&[u8]; 6] = [b"on", b"e\n\ntw", b"o\n", &endless, b"\nthree\n", b"four"];
        for part in parts {
            came.extend(lines.take(part));
        }
        let cut = "y".repeat(MAX_CHARS);
        assert_eq!(came, ["one", "two", cut.as_str(), "three"]);
        assert_eq!(lines.rest().as_deref(), Some("four"));
        assert_eq!(lines.rest(), None);
    }
}
