//! The image that virtual machines start from: a disk, a kernel, what starts it. Made by
//! `just vm-image`, only read here.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::env::sandbox::first_uid;

/// The form of `image.json` that is read here.
const FORMAT: u32 = 1;

/// `image.json`, as far as it is needed.
#[derive(Clone, Debug, Deserialize)]
struct About {
    format: u32,
    key: String,
    append: String,
}

/// An image.
#[derive(Clone, Debug)]
pub(super) struct Image {
    folder: PathBuf,
    /// Changes with all that it is made of.
    pub(super) key: String,
    /// The kernel's command line.
    pub(super) append: String,
}

impl Image {
    /// Opens the image in a folder. An error says what to do.
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join("image.json");
        let shown = path.display();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!(
                    "there is no image in {}: run `just vm-image`, or name its folder with \
                     --set env.qemu.image=...",
                    folder.display()
                ));
            }
            Err(error) => return Err(format!("cannot read {shown}: {error}")),
        };
        let again = "remove the folder and run `just vm-image` again";
        let about: About =
            serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}: {again}"))?;
        if about.format != FORMAT {
            return Err(format!(
                "{shown}: format {} is not {FORMAT}, which this program reads: {again}",
                about.format
            ));
        }
        let image = Self {
            folder: folder.to_owned(),
            key: about.key,
            append: about.append,
        };
        for path in [image.disk(), image.kernel(), image.initrd()] {
            let shown = path.display();
            let data = File::open(&path).and_then(|file| file.metadata());
            let data = data.map_err(|error| format!("{shown}: {error}: {again}"))?;
            // Handed over opened, but the slot's user opens it again by rights of its own.
            if first_uid().is_some() && data.mode() & 0o004 == 0 {
                return Err(format!(
                    "{shown} is not for others to read: chmod a+r {shown}"
                ));
            }
        }
        Ok(image)
    }

    /// Its disk, a qcow2 that nobody writes to.
    pub(super) fn disk(&self) -> PathBuf {
        self.folder.join("disk.qcow2")
    }

    /// Its kernel, an ELF.
    pub(super) fn kernel(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    /// What the kernel starts with, a cpio.
    pub(super) fn initrd(&self) -> PathBuf {
        self.folder.join("initrd.cpio")
    }

    /// Where snapshots of it are kept.
    pub(super) fn snapshots(&self) -> PathBuf {
        self.folder.join("snapshots")
    }

    /// Bytes of its disk as the guest sees it.
    pub(super) fn disk_bytes(&self) -> Result<u64, String> {
        let path = self.disk();
        let mut header = [0; 32];
        let read = File::open(&path).and_then(|mut file| file.read_exact(&mut header));
        read.map_err(|error| format!("{}: {error}", path.display()))?;
        // docs/interop/qcow2.rst: the magic, and the size at byte 24, big-endian.
        let (magic, size) = (&header[..4], &header[24..]);
        if magic != b"QFI\xfb" {
            return Err(format!("{} is no qcow2", path.display()));
        }
        let size: [u8; 8] = size.try_into().expect("32 less 24 bytes are 8");
        Ok(u64::from_be_bytes(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_is_told() {
        let whole = r#"{"format": 1, "key": "k", "append": "quiet", "more": []}"#;
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[], "there is no image in "),
            (&[("image.json", "{")], "image.json: EOF"),
            (&[("image.json", r#"{"format": 1}"#)], "missing field `key`"),
            (
                &[("image.json", r#"{"format": 2, "key": "k", "append": ""}"#)],
                "format 2 is not 1",
            ),
            (&[("image.json", whole)], "disk.qcow2: No such file"),
            (
                &[("image.json", whole), ("disk.qcow2", ""), ("vmlinux", "")],
                "initrd.cpio: No such file",
            ),
        ];
        for (files, told) in cases {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in *files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            let error = Image::open(folder.path()).unwrap_err();
            assert!(error.contains(told), "{error}");
            assert!(error.contains("just vm-image"), "{error}");
        }
    }

    #[test]
    fn a_disk_says_how_large_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let whole = r#"{"format": 1, "key": "k", "append": "quiet"}"#;
        for (name, text) in [("image.json", whole), ("vmlinux", ""), ("initrd.cpio", "")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut header = vec![0; 32];
        header[..4].copy_from_slice(b"QFI\xfb");
        header[24..].copy_from_slice(&(6_u64 << 30).to_be_bytes());
        fs::write(folder.path().join("disk.qcow2"), &header).unwrap();
        let image = Image::open(folder.path()).unwrap();
        assert_eq!(image.disk_bytes(), Ok(6 << 30));
        header[0] = 0;
        fs::write(image.disk(), &header).unwrap();
        assert!(image.disk_bytes().unwrap_err().ends_with("is no qcow2"));
    }
}
