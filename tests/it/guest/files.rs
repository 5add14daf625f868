//! Files to and from a guest: whole, or an error.

use std::path::Path;

use arpo::env::guest::{Child, Entry, Guest, GuestError, GuestOptions};
use serde_json::json;

use super::{
    Question, Reply, Server, block_on, check, kind, of_json, options, page, question, text,
};

#[test]
fn folders_are_read_with_what_cannot_be() {
    let tree = json!({"directory_tree": {"type": "directory", "name": "a", "children": [
        {"type": "file", "name": "f"},
        {"type": "directory", "name": "b", "children": []},
        {"error": "[Errno 13] Permission denied: '/a/c'"},
    ]}});
    let server = Server::start(vec![of_json(200, &tree)]);
    let entry = block_on(server.guest().list_directory("/a")).unwrap();
    let expected = Entry::Directory {
        name: "a".to_owned(),
        children: vec![
            Child::Entry(Entry::File {
                name: "f".to_owned(),
            }),
            Child::Entry(Entry::Directory {
                name: "b".to_owned(),
                children: Vec::new(),
            }),
            Child::Unreadable {
                error: "[Errno 13] Permission denied: '/a/c'".to_owned(),
            },
        ],
    };
    assert_eq!(entry, expected);
    let none = json!({"error": "The provided path is not a directory"});
    let ask: Question = question!(guest => guest.list_directory("/a"));
    check(
        ask,
        &[of_json(400, &none)],
        (
            "Reported",
            "/list_directory (/a) failed (400): The provided",
        ),
        1,
    );
}

#[test]
fn files_come_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("f");
    let file = |bytes: &[u8]| Reply::Whole(200, "text/html", bytes.to_vec());
    let missing = of_json(404, &json!({"error": "File not found"}));
    let download = |replies: Vec<Reply>, limit: u64| {
        let server = Server::start(replies);
        let options = GuestOptions {
            max_file_bytes: limit,
            max_answer_bytes: limit,
            ..options()
        };
        let guest = Guest::new(&server.address, options).unwrap();
        let read = block_on(guest.read_file("/x"));
        (block_on(guest.download("/x", &to)), read)
    };
    let large = vec![7; 3 << 20];
    let (there, read) = download(vec![file(&large)], 4 << 20);
    assert!(there.unwrap());
    assert_eq!(read.unwrap().unwrap(), large);
    assert_eq!(std::fs::read(&to).unwrap(), large);
    // Going on after a cut begins anew.
    let cut = Reply::Cut("text/html", b"0123456789".to_vec(), 4);
    let (there, _) = download(vec![file(b""), cut.clone(), file(b"0123456789")], 100);
    assert!(there.unwrap());
    assert_eq!(std::fs::read(&to).unwrap(), b"0123456789");

    std::fs::remove_file(&to).unwrap();
    let (there, read) = download(vec![missing], 100);
    assert_eq!((there.unwrap(), read.unwrap()), (false, None));
    assert!(!to.exists());
    let chunked = "HTTP/1.1 200 X\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n";
    let chunked = Reply::Raw(chunked.to_owned().leak());
    let endless = Reply::Raw(
        "HTTP/1.1 200 X\r\nContent-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n",
    );
    let failures = [
        (cut, 100, "HalfSent"),
        (file(&large), 100, "TooLarge"),
        (endless, 9, "TooLarge"),
        (chunked, 100, "Broken"),
    ];
    for (reply, limit, expected) in failures {
        let (there, read) = download(vec![reply.clone()], limit);
        assert_eq!(kind(&there.unwrap_err()), expected, "{reply:?}");
        assert_eq!(kind(&read.unwrap_err()), expected, "{reply:?}");
        assert!(!to.exists(), "{reply:?}");
    }
    // This machine's fault.
    let server = Server::start(vec![file(b"x")]);
    let error = block_on(server.guest().download("/x", folder.path())).unwrap_err();
    assert!(matches!(error, GuestError::File { .. }), "{error}");
}

#[test]
fn uploads_arrive_whole() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("f");
    let content: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(&from, &content).unwrap();
    let replies = vec![page(), text("File Uploaded: 300000 bytes")];
    let server = Server::start(replies);
    block_on(server.guest().upload(&from, "~/ä/\"f\"")).unwrap();
    let seen = server.seen.lock().unwrap();
    // A second try sends all of it again.
    assert_eq!(seen.len(), 2);
    for request in seen.iter() {
        assert_eq!(
            (request.method(), request.path()),
            ("POST", "/setup/upload")
        );
        assert_eq!(request.header("transfer-encoding"), "");
        let mime = request.header("content-type");
        let boundary = mime.strip_prefix("multipart/form-data; boundary=").unwrap();
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file_path\"\r\n\r\n~/ä/\"f\"\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file_data\"; \
             filename=\"upload\"\r\n\r\n"
        );
        let tail = format!("\r\n--{boundary}--\r\n");
        let expected = [head.as_bytes(), &content, tail.as_bytes()].concat();
        assert!(request.body == expected, "{}", request.body.len());
    }
    drop(seen);
    let ask = |reply: Reply| {
        let server = Server::start(vec![reply]);
        block_on(server.guest().upload(&from, "/x"))
    };
    ask(text("File Uploaded")).unwrap();
    let error = ask(text("File Uploaded: 12 bytes")).unwrap_err();
    assert!(error.to_string().contains("12 bytes of 300000"), "{error}");
    let error = block_on(server.guest().upload(Path::new("/none"), "/x")).unwrap_err();
    assert!(error.to_string().contains("cannot read /none"), "{error}");
}

#[test]
fn recordings_are_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a.mp4");
    let server = Server::start(vec![Reply::Whole(200, "video/mp4", b"mp4".to_vec())]);
    block_on(server.guest().end_recording(&to)).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), b"mp4");
    let none = json!({"status": "error", "message": "No recording in progress to stop."});
    let server = Server::start(vec![of_json(400, &none)]);
    let error = block_on(server.guest().end_recording(&to)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("(400): No recording in progress"),
        "{error}"
    );
}
