//! The picture that QEMU writes of a screen, read as what a hostile program may have written.

use crate::types::{ScreenSize, Screenshot};

/// Largest side, pixels.
const MAX_SIDE: u32 = 8192;

/// Most bytes before the pixels.
const MAX_HEADER: usize = 64;

/// Reads a binary PPM of 8 bits a channel: `P6`, width, height, 255, then `[height, width, 3]`.
pub(super) fn read_ppm(bytes: &[u8]) -> Result<Screenshot, String> {
    let mut at = 0;
    let mut word = || {
        let skip = |byte: &u8| byte.is_ascii_whitespace();
        let header = &bytes[..bytes.len().min(MAX_HEADER)];
        let begin = at + header.get(at..)?.iter().position(|byte| !skip(byte))?;
        let end = begin + header[begin..].iter().position(skip)?;
        at = end;
        std::str::from_utf8(&header[begin..end]).ok()
    };
    if word() != Some("P6") {
        return Err("no picture of the kind P6".to_owned());
    }
    let mut side = || {
        let side: u32 = word()?.parse().ok()?;
        (1..=MAX_SIDE).contains(&side).then_some(side)
    };
    let size = side().zip(side());
    let (width, height) = size.ok_or_else(|| format!("no size of 1 to {MAX_SIDE} pixels"))?;
    if word() != Some("255") {
        return Err("not 8 bits a channel".to_owned());
    }
    // One character ends the header.
    let pixels = &bytes[at + 1..];
    let wanted = width as usize * height as usize * 3;
    if pixels.len() != wanted {
        let came = pixels.len();
        return Err(format!("{came} bytes of pixels instead of {wanted}"));
    }
    let size = ScreenSize { width, height };
    Ok(Screenshot::new(size, pixels.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::read_ppm;

    /// A size in pixels, or part of a refusal.
    type Expected = Result<(u32, u32), &'static str>;

    #[test]
    fn pictures_are_read_and_others_refused() {
        let cases: &[(&[u8], Expected)] = &[
            (b"P6\n2 1\n255\nabcdef", Ok((2, 1))),
            (b"P6 1 2 255\nabcdef", Ok((1, 2))),
            (b"P6\n1 1\n255\n\n\n\n", Ok((1, 1))),
            (b"", Err("P6")),
            (b"P6", Err("P6")),
            (b"P5\n2 1\n255\nab", Err("P6")),
            (b"P6\n2\n", Err("size")),
            (b"P6\n0 1\n255\n", Err("size")),
            (b"P6\n-2 1\n255\n", Err("size")),
            (b"P6\n99999999999999999999 1\n255\n", Err("size")),
            (b"P6\n8193 8193\n255\n", Err("size")),
            (b"P6\n2 1\n65535\nabcdef", Err("8 bits")),
            (b"P6\n2 1\n255", Err("8 bits")),
            (
                b"P6\n2 1\n255\nabcde",
                Err("5 bytes of pixels instead of 6"),
            ),
            (
                b"P6\n2 1\n255\nabcdefg",
                Err("7 bytes of pixels instead of 6"),
            ),
            (b"P6\n8192 8192\n255\n", Err("0 bytes of pixels")),
            (&[b' '; 100], Err("P6")),
            (b"P6 \xff\xff 1 255\n", Err("size")),
        ];
        for (bytes, expected) in cases {
            let told = String::from_utf8_lossy(bytes);
            match (read_ppm(bytes), expected) {
                (Ok(picture), Ok(size)) => {
                    assert_eq!((picture.size().width, picture.size().height), *size);
                }
                (Err(reason), Err(part)) => assert!(reason.contains(part), "{told:?}: {reason}"),
                (read, _) => panic!("{told:?}: {:?}", read.map(|picture| picture.size())),
            }
        }
    }
}
