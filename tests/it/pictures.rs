//! Pictures as a terminal gets them, decoded by other means than they were encoded.

use std::sync::Arc;

use arpo::tui::picture::{
    EncodeJob, Encoded, Grain, PLACEHOLDER, PictureKey, Protocol, Raster, Wanted, encode,
};
use arpo::tui::theme::ColorDepth;
use arpo::types::{ScreenSize, Screenshot};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ratatui::layout::Rect;

/// A decoded picture: width, then red, green, blue a pixel.
pub(crate) struct Decoded {
    pub(crate) width: usize,
    pub(crate) pixels: Vec<[u8; 3]>,
}

/// A command of the kitty protocol: its keys and its data, chunks joined.
pub(crate) struct KittyCommand {
    pub(crate) keys: Vec<(char, String)>,
    data: String,
}

impl KittyCommand {
    pub(crate) fn key(&self, name: char) -> Option<&str> {
        let found = self.keys.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Its PNG, by a decoder that expands palettes.
    pub(crate) fn picture(&self) -> Decoded {
        assert_eq!(self.key('f'), Some("100"), "not a PNG");
        let png = STANDARD.decode(&self.data).unwrap();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgb);
        Decoded {
            width: info.width as usize,
            pixels: bytes[..info.buffer_size()]
                .chunks_exact(3)
                .map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect(),
        }
    }
}

/// All commands of the kitty protocol in what a terminal received.
pub(crate) fn kitty_commands(bytes: &[u8]) -> Vec<KittyCommand> {
    let mut commands: Vec<KittyCommand> = Vec::new();
    let mut is_open = false;
    let mut rest = bytes;
    while let Some(start) = rest.windows(3).position(|window| window == b"\x1b_G") {
        rest = &rest[start + 3..];
        let end = rest.windows(2).position(|window| window == b"\x1b\\");
        let Some(end) = end else { break };
        let text = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 2..];
        let (keys, data) = text.split_once(';').unwrap_or((text, ""));
        assert!(data.len() <= 4096, "a chunk of {} bytes", data.len());
        let keys: Vec<(char, String)> = keys
            .split(',')
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap();
                (key.chars().next().unwrap(), value.to_owned())
            })
            .collect();
        let more = keys.iter().any(|(key, value)| *key == 'm' && value == "1");
        if is_open {
            assert!(keys.iter().all(|(key, _)| matches!(key, 'm' | 'q')));
            commands.last_mut().unwrap().data.push_str(data);
        } else {
            let data = data.to_owned();
            commands.push(KittyCommand { keys, data });
        }
        is_open = more;
    }
    assert!(!is_open, "the last picture is cut short");
    commands
}

/// The sixel pictures in what a terminal received.
pub(crate) fn sixel_pictures(bytes: &[u8]) -> Vec<Decoded> {
    let mut pictures = Vec::new();
    let mut rest = bytes;
    while let Some(start) = rest.windows(2).position(|window| window == b"\x1bP") {
        rest = &rest[start + 2..];
        let end = rest.windows(2).position(|window| window == b"\x1b\\");
        let Some(end) = end else { break };
        let body = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 2..];
        let (_, body) = body.split_once('q').unwrap();
        pictures.push(decode_sixel(body));
    }
    pictures
}

fn numbers(text: &str) -> (Vec<usize>, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != ';')
        .unwrap_or(text.len());
    let values = text[..end].split(';').map(|digits| digits.parse().unwrap());
    (values.collect(), &text[end..])
}

fn decode_sixel(body: &str) -> Decoded {
    let (size, mut rest) = numbers(body.strip_prefix('"').unwrap());
    let (width, height) = (size[2], size[3]);
    let mut pixels = vec![None; width * height];
    let mut palette = vec![[0_u8; 3]; 256];
    let (mut color, mut x, mut band) = (0, 0, 0);
    while let Some(command) = rest.chars().next() {
        rest = &rest[1..];
        let mut repeat = 1;
        let mut sixel = command;
        match command {
            '#' => {
                let (values, after) = numbers(rest);
                rest = after;
                color = values[0];
                if let [_, 2, red, green, blue] = values[..] {
                    palette[color] = [red, green, blue].map(|part| (part * 255 / 100) as u8);
                }
                continue;
            }
            '$' => {
                x = 0;
                continue;
            }
            '-' => {
                (x, band) = (0, band + 1);
                continue;
            }
            '!' => {
                let (values, after) = numbers(rest);
                repeat = values[0];
                sixel = after.chars().next().unwrap();
                rest = &after[1..];
            }
            _ => {}
        }
        let bits = sixel as u8 - b'?';
        for _ in 0..repeat {
            for row in (0..6).filter(|row| bits >> row & 1 == 1) {
                let y = band * 6 + row;
                assert!(x < width && y < height, "a dot outside at {x},{y}");
                pixels[y * width + x] = Some(palette[color]);
            }
            x += 1;
        }
    }
    let pixels = pixels.into_iter().map(|pixel| pixel.unwrap()).collect();
    Decoded { width, pixels }
}

/// A desktop of sorts: a gradient, a window, text-like noise.
pub(crate) fn desktop() -> Screenshot {
    let (width, height) = (640_u32, 480_u32);
    let pixel = |x: u32, y: u32| match (x, y) {
        (100..400, 80..100) => [30, 60, 150],
        (110..390, 110..300) if (x / 3 + y / 5).is_multiple_of(7) => [20, 20, 20],
        (100..400, 100..320) => [245, 245, 240],
        _ => [(x * 120 / width) as u8, 90, 100 + (y * 100 / height) as u8],
    };
    let rgb = (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| pixel(x, y)))
        .collect();
    Screenshot::new(ScreenSize { width, height }, rgb)
}

/// Mean difference of channels, of 255.
pub(crate) fn mean_error(one: &[[u8; 3]], other: &[[u8; 3]]) -> f64 {
    assert_eq!(one.len(), other.len());
    let total: u64 = one
        .as_flattened()
        .iter()
        .zip(other.as_flattened())
        .map(|(one, other)| u64::from(one.abs_diff(*other)))
        .sum();
    total as f64 / (3 * one.len()) as f64
}

fn job(protocol: Protocol, most: u16, colors: usize) -> EncodeJob {
    let shot = desktop();
    let grain = Grain::Pixels {
        cell: (10, 20),
        most,
    };
    let raster = Raster::with_grain(&shot, 42, 14, grain).unwrap();
    let key = PictureKey {
        image: shot.hash().clone(),
        columns: 42,
        rows: 14,
        grain,
    };
    let wanted = Wanted {
        slot: 3,
        key,
        mark: None,
        area: Rect::new(5, 2, 42, 14),
        protocol,
        is_focus: true,
        is_update: false,
    };
    EncodeJob {
        wanted,
        raster: Arc::new(raster),
        colors,
        depth: ColorDepth::True,
    }
}

#[test]
fn kitty_pictures_decode_to_what_was_to_be_shown() {
    for (most, colors, limit) in [
        (320, 64, 4.0),
        (160, 64, 4.0),
        (160, 16, 9.0),
        (160, 256, 2.0),
    ] {
        let job = job(Protocol::Kitty, most, colors);
        let Encoded { bytes, placed, .. } = encode(&job).unwrap();
        let commands = kitty_commands(&bytes);
        assert_eq!(commands.len(), 1);
        let command = &commands[0];
        let expected = [('a', "T"), ('U', "1"), ('q', "2"), ('c', "37"), ('r', "14")];
        for (key, value) in expected {
            assert_eq!(command.key(key), Some(value), "{key}");
        }
        assert_eq!(command.key('i'), Some(placed.id.to_string().as_str()));
        assert_eq!(placed.id >> 16, 0xa7);
        let decoded = command.picture();
        assert_eq!(decoded.width, usize::from(most));
        let error = mean_error(&decoded.pixels, &job.raster.dots);
        assert!(
            error < limit,
            "{most} px, {colors} colors: off by {error:.2}"
        );
        println!(
            "{most} px, {colors} colors: {} bytes, off by {error:.2}",
            bytes.len()
        );
    }
}

#[test]
fn sixel_pictures_decode_to_what_was_to_be_shown() {
    for (colors, limit) in [(16, 9.0), (64, 4.0)] {
        let job = job(Protocol::Sixel(colors), u16::MAX, 64);
        let Encoded { bytes, .. } = encode(&job).unwrap();
        assert!(bytes.starts_with(b"\x1b[3;8H\x1bP"), "not at its place");
        let pictures = sixel_pictures(&bytes);
        assert_eq!(pictures.len(), 1);
        assert_eq!(pictures[0].width, 370);
        let error = mean_error(&pictures[0].pixels, &job.raster.dots);
        assert!(error < limit, "{colors} colors: off by {error:.2}");
        println!("{colors} colors: {} bytes, off by {error:.2}", bytes.len());
    }
}

#[test]
fn placeholders_are_one_cell_wide() {
    assert_eq!(PLACEHOLDER as u32, 0x10_eeee);
}
