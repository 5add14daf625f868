//! Lines of a stream that somebody hostile may write: cut where they are too long.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The next line, or its first `most` bytes, without what ends it; none at the end of the stream.
/// What is beyond comes as lines of their own.
pub(super) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    most: u64,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = reader.take(most);
    if limited.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    while line
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        line.pop();
    }
    Ok(Some(line))
}
