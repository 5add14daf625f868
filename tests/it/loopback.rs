//! A server on this machine that answers, byte by byte, what a test makes up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// A request, whole.
#[derive(Clone, Debug)]
pub struct Request {
    /// `METHOD PATH VERSION`, then the headers.
    head: Vec<String>,
    /// As long as the headers say.
    pub body: Vec<u8>,
}

impl Request {
    pub fn method(&self) -> &str {
        self.head[0].split(' ').next().unwrap()
    }

    pub fn path(&self) -> &str {
        self.head[0].split(' ').nth(1).unwrap()
    }

    /// Empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let own = self.head.iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        });
        own.unwrap_or_default()
    }
}

/// Starts a server; returns its `HOST:PORT`. Each connection is one request, answered by what
/// `answer` makes of it, sent as it is, and then closed. `None` is a crash: no answer, and nobody
/// listens from then on.
pub fn serve(answer: impl Fn(&Request) -> Option<Vec<u8>> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, crashed) = (Arc::new(answer), Arc::new(AtomicBool::new(false)));
    let (gone, is_gone) = mpsc::channel::<()>();
    let is_gone = Arc::new(std::sync::Mutex::new(is_gone));
    std::thread::spawn(move || {
        // Dropped after the listener, which tells whoever waits for that.
        let _gone = gone;
        let listener = listener;
        for connection in listener.incoming() {
            if crashed.load(Ordering::Acquire) {
                break;
            }
            let (answer, crashed) = (Arc::clone(&answer), Arc::clone(&crashed));
            let is_gone = Arc::clone(&is_gone);
            std::thread::spawn(move || {
                let mut connection = connection.unwrap();
                let Some(request) = read(&connection) else {
                    return;
                };
                if let Some(bytes) = answer(&request) {
                    // The other side may have hung up; it is the one that is tested.
                    let _ = connection.write_all(&bytes);
                    return;
                }
                crashed.store(true, Ordering::Release);
                // Wakes the listener, which then goes; the client learns of it after that.
                let _ = TcpStream::connect(address);
                let _ = is_gone.lock().unwrap().recv();
            });
        }
    });
    address.to_string()
}

fn read(connection: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    head.first()?.split(' ').nth(1)?;
    let mut request = Request {
        head,
        body: Vec::new(),
    };
    let bytes = request.header("content-length").parse().unwrap_or(0);
    reader.take(bytes).read_to_end(&mut request.body).ok()?;
    Some(request)
}
