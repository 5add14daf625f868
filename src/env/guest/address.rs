//! Addresses of pages, compared as OSWorld does (`compare_urls`).
//!
//! Departs: an address with brackets that do not match raises an exception there; here it is an
//! address like others. The public suffix list is that of the crate, there that of the package.

/// Whether two addresses are of the same page, but for scheme names left out, `www` and the public
/// suffix of the host.
pub fn is_same_page(left: &str, right: &str) -> bool {
    Address::read(left) == Address::read(right)
}

/// An address in parts; parameters belong to the path.
#[derive(PartialEq)]
struct Address {
    scheme: String,
    host: String,
    path: String,
    query: String,
    fragment: String,
}

impl Address {
    /// Parts an address; one without a scheme has that of the web.
    fn read(written: &str) -> Self {
        let is_part = |scheme: &str| {
            let mut chars = scheme.chars();
            chars.next().is_some_and(|c| c.is_ascii_alphabetic())
                && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        let parted = written
            .split_once("://")
            .filter(|(scheme, _)| is_part(scheme));
        let (scheme, rest) = parted.unwrap_or(("http", written));
        let end = |text: &str, marks: &[char]| text.find(marks).unwrap_or(text.len());
        let (host, rest) = rest.split_at(end(rest, &['/', '?', '#']));
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Self {
            scheme: scheme.to_lowercase(),
            host: bare_host(&host.to_lowercase()),
            path: if path == "/" {
                String::new()
            } else {
                path.to_owned()
            },
            query: query.to_owned(),
            fragment: fragment.to_owned(),
        }
    }
}

/// A host without user, port, public suffix and `www`.
fn bare_host(host: &str) -> String {
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let host = host
        .trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
        .trim_end_matches('.');
    let is_ip = host.parse::<std::net::Ipv4Addr>().is_ok();
    let suffix = if is_ip { "" } else { registry_suffix(host) };
    let rest = host.strip_suffix(suffix).unwrap_or(host);
    let rest = if suffix.is_empty() {
        rest
    } else {
        rest.trim_end_matches('.')
    };
    let (subdomain, domain) = rest.rsplit_once('.').unwrap_or(("", rest));
    if is_ip || !matches!(subdomain, "" | "www") {
        return rest.to_owned();
    }
    domain.to_owned()
}

/// The suffix that a registry gives names under; none where the list does not know it. What
/// private owners give, `github.io` for one, is none.
fn registry_suffix(host: &str) -> &str {
    let mut rest = host;
    loop {
        let suffix = psl::suffix(rest.as_bytes());
        let kind = suffix.and_then(|suffix| suffix.typ());
        let len = suffix.map_or(0, |suffix| suffix.as_bytes().len());
        match kind {
            Some(psl::Type::Icann) => return &rest[rest.len() - len..],
            Some(psl::Type::Private) => {
                let suffix = &rest[rest.len() - len..];
                let Some((_, shorter)) = suffix.split_once('.') else {
                    return "";
                };
                rest = shorter;
            }
            None => return "",
        }
    }
}
