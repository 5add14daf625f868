//! The HTTP client that everything takes which speaks HTTP, and what its answers tell.
//!
//! What is asked of whom, and what is tried again, is the business of whoever asks.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Client, ClientBuilder, Error, Response, Version};

/// A client for the web: the operator's proxies, the machine's certificates. `stall` is how long a
/// server may be silent.
pub fn web_client(stall: Duration) -> Result<Client, Error> {
    builder().connect_timeout(stall).read_timeout(stall).build()
}

/// A client for machines of our own, whose address is the whole of what is known of them: past the
/// operator's proxies, following no redirect, and with a connection for each request. A kept one
/// that the other side has closed cannot be told from a request that was carried out and lost.
/// Every request needs a deadline of its own. With a socket all go through it, whatever their host;
/// with a token all bear it.
pub fn direct_client(
    connect: Duration,
    socket: Option<&Path>,
    token: Option<&str>,
) -> Result<Client, String> {
    let mut builder = builder()
        .connect_timeout(connect)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0);
    if let Some(path) = socket {
        builder = builder.unix_socket(path);
    }
    if let Some(token) = token {
        let bearer = HeaderValue::try_from(format!("Bearer {token}"));
        let mut bearer = bearer.map_err(|_| "the token has characters that no header has")?;
        bearer.set_sensitive(true);
        builder = builder.default_headers([(AUTHORIZATION, bearer)].into_iter().collect());
    }
    builder.build().map_err(|error| with_causes(&error))
}

fn builder() -> ClientBuilder {
    // Fails where it is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(concat!("arpo/", env!("CARGO_PKG_VERSION")))
}

/// An error with its causes: the client's own words name only itself.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Whether the end of the content is marked, so that a cut is noticed without a length.
pub fn has_own_end(response: &Response) -> bool {
    response.version() >= Version::HTTP_2 || response.headers().contains_key(TRANSFER_ENCODING)
}
