//! What a guest's kernel starts with: the image's own archive, and behind it one with `arpo`, the
//! libraries it needs and the token of its server.
//!
//! The guest's system need not be ours: `arpo` brings its loader and its libraries along.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use super::image::Image;

/// The loader by the name that the guest's boot script starts.
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Modes of what is in the archive: type and rights.
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const SECRET: u32 = 0o100_600;

/// Writes the archives one behind the other.
pub(super) fn write(image: &Image, arpo: &Path, token: &str, path: &Path) -> Result<(), String> {
    let failed = |what: &Path| {
        let what = what.display().to_string();
        move |error: io::Error| format!("{what}: {error}")
    };
    let program = fs::read(arpo).map_err(failed(arpo))?;
    let libraries = libraries(&program, arpo)?;
    let mut bytes = fs::read(image.initrd()).map_err(failed(&image.initrd()))?;
    // The kernel looks for the next archive at a multiple of four.
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let mut archive = Archive::new(bytes);
    archive.add("arpo", FOLDER, &[]);
    archive.add("arpo/lib", FOLDER, &[]);
    archive.add("arpo/arpo", PROGRAM, &loaded_part(program, arpo)?);
    for library in libraries {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&library).map_err(failed(&library))?;
        archive.add(&format!("arpo/lib/{name}"), PROGRAM, &bytes);
    }
    archive.add("arpo/token", SECRET, token.as_bytes());
    let write = |mut file: File| {
        file.write_all(&archive.finish())?;
        // Opened again by the slot's user, whatever our umask.
        file.set_permissions(Permissions::from_mode(0o444))
    };
    File::create(path).and_then(write).map_err(failed(path))
}

/// The program headers of an executable, each with where its part of the file ends.
struct Parts {
    /// Where what is loaded ends.
    end: usize,
    /// The loader that it asks for.
    loader: Option<PathBuf>,
}

impl Parts {
    fn of(program: &[u8], path: &Path) -> Result<Self, String> {
        let unfit = |reason: String| {
            format!(
                "{} is no program for a virtual machine of x86_64: {reason}",
                path.display()
            )
        };
        let header = FileHeader64::<Endianness>::parse(program);
        let header = header.map_err(|error| unfit(error.to_string()))?;
        let endian = header.endian().map_err(|error| unfit(error.to_string()))?;
        if header.e_machine.get(endian) != object::elf::EM_X86_64 {
            return Err(unfit("it is another machine's".to_owned()));
        }
        let headers = header.program_headers(endian, program);
        let headers = headers.map_err(|error| unfit(error.to_string()))?;
        let ends = headers.iter().map(|part| {
            let end = part.p_offset(endian).saturating_add(part.p_filesz(endian));
            usize::try_from(end).unwrap_or(usize::MAX)
        });
        let end = ends.max().unwrap_or(0).min(program.len());
        let asks = headers.iter().find(|part| part.p_type(endian) == PT_INTERP);
        let loader = asks.and_then(|part| part.data(endian, program).ok());
        let loader = loader.map(|bytes| {
            let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            PathBuf::from(String::from_utf8_lossy(name).into_owned())
        });
        Ok(Self { end, loader })
    }
}

/// An executable without what is not loaded: names and lines for debuggers are most of some.
fn loaded_part(mut program: Vec<u8>, path: &Path) -> Result<Vec<u8>, String> {
    let end = Parts::of(&program, path)?.end;
    program.truncate(end);
    // The table of sections is gone: its place, its count and that of its names
    // (elf(5): e_shoff, e_shnum, e_shstrndx).
    for bytes in [0x28..0x30, 0x3c..0x3e, 0x3e..0x40] {
        if let Some(field) = program.get_mut(bytes) {
            field.fill(0);
        }
    }
    Ok(program)
}

/// The loader and the libraries that a program needs, as its loader finds them here.
fn libraries(program: &[u8], path: &Path) -> Result<Vec<PathBuf>, String> {
    let loader = Parts::of(program, path)?.loader;
    let loader = loader.filter(|loader| loader.ends_with(LOADER));
    let loader = loader.ok_or_else(|| {
        format!(
            "{} does not ask for {LOADER}: build it for the target x86_64-unknown-linux-gnu",
            path.display()
        )
    })?;
    let listing = Command::new(&loader).arg("--list").arg(path).output();
    let listing = listing.map_err(|error| format!("{}: {error}", loader.display()))?;
    if !listing.status.success() {
        let said = String::from_utf8_lossy(&listing.stderr).trim().to_owned();
        return Err(format!(
            "the libraries of {} cannot be listed: {said}",
            path.display()
        ));
    }
    let mut found = listed(&String::from_utf8_lossy(&listing.stdout))?;
    found.retain(|library| !library.ends_with(LOADER));
    found.push(loader);
    Ok(found)
}

/// Reads `NAME => PATH (ADDRESS)` and `PATH (ADDRESS)`; the kernel's own has no path.
fn listed(text: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let place = line.split_once("=> ").map_or(line, |(_, place)| place);
        if place.starts_with("not found") {
            return Err(format!("a library is missing: {line}"));
        }
        let place = place.rsplit_once(" (").map_or(place, |(place, _)| place);
        if place.starts_with('/') {
            found.push(PathBuf::from(place));
        }
    }
    Ok(found)
}

/// An archive of the kind that the kernel unpacks (cpio, newc), all of root's.
///
/// Source: Linux's Documentation/driver-api/early-userspace/buffer-format.rst.
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    /// One that begins behind `bytes`.
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, files: 0 }
    }

    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.files += 1;
        let links = if mode & 0o040_000 == 0 { 1 } else { 2 };
        let size = content.len() as u32;
        let name_size = name.len() as u32 + 1;
        // Number, mode, user, group, links, time, size, device and the device it is (each in two
        // parts), length of the name, checksum.
        let fields = [
            self.files, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        let aligned = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(aligned, 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_what_the_kernel_reads() {
        let mut archive = Archive::new(vec![7; 4]);
        archive.add("arpo", FOLDER, &[]);
        archive.add("arpo/token", SECRET, b"abcde");
        // python: the newc record by hand, struct by struct, as in the kernel's description.
        let expected = [
            "\u{7}\u{7}\u{7}\u{7}",
            "07070100000001000041ed0000000000000000000000020000000000000000",
            "000000000000000000000000000000000000000500000000arpo\0\0",
            "0707010000000200008180000000000000000000000001000000000000000500000000",
            "0000000000000000000000000000000b00000000arpo/token\0\0\0\0",
            "abcde\0\0\0",
            "0707010000000300000000000000000000000000000001000000000000000000000000",
            "0000000000000000000000000000000b00000000TRAILER!!!\0\0\0\0",
        ];
        let text = String::from_utf8(archive.finish()).unwrap();
        assert_eq!(text, expected.concat());
    }

    #[test]
    fn libraries_are_those_that_the_loader_lists() {
        let cases: &[(&str, Result<&[&str], &str>)] = &[
            (
                "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld (0x3)\n",
                Ok(&["/lib/libc.so.6", "/lib64/ld"]),
            ),
            (
                "\tlibx.so => /a b (c)/libx.so (0x2)\n",
                Ok(&["/a b (c)/libx.so"]),
            ),
            ("\tstatically linked\n", Ok(&[])),
            (
                "\tlibx.so => not found\n",
                Err("a library is missing: libx.so => not found"),
            ),
        ];
        for (text, expected) in cases {
            let found = listed(text);
            match expected {
                Ok(paths) => {
                    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
                    assert_eq!(found, Ok(paths), "{text:?}");
                }
                Err(told) => assert_eq!(found, Err((*told).to_owned())),
            }
        }
    }

    #[test]
    fn a_program_runs_without_what_is_not_loaded() {
        let ours = std::env::current_exe().unwrap();
        let whole = fs::read(&ours).unwrap();
        let count = whole.len();
        let part = loaded_part(whole, &ours).unwrap();
        assert!(part.len() < count);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, part).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(&path).arg("--help").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let program = fs::read(&path).unwrap();
        let libraries = libraries(&program, &path).unwrap();
        assert!(libraries.iter().all(|library| library.is_file()));
        assert!(
            libraries
                .iter()
                .any(|library| library.ends_with("libc.so.6"))
        );
        assert!(libraries.iter().any(|library| library.ends_with(LOADER)));
    }

    #[test]
    fn all_may_read_what_a_guest_starts_with() {
        let folder = tempfile::tempdir().unwrap();
        let about = r#"{"format": 1, "key": "image", "append": ""}"#;
        let files = [
            ("disk.qcow2", ""),
            ("vmlinux", ""),
            ("initrd.cpio", "image"),
        ];
        for (name, text) in files.into_iter().chain([("image.json", about)]) {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let image = Image::open(folder.path()).unwrap();
        let path = folder.path().join("initrd");
        write(&image, &std::env::current_exe().unwrap(), "token", &path).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(b"image\0\0\x00070701"));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o444);
    }

    #[test]
    fn what_is_no_program_is_told() {
        for bytes in [
            &b""[..],
            b"#!/bin/sh\n",
            &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0],
        ] {
            let error = loaded_part(bytes.to_vec(), Path::new("/x")).unwrap_err();
            assert!(error.starts_with("/x is no program"), "{error}");
        }
    }
}
