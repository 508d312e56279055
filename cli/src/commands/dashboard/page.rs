//! The page: one document that contains its style and script, with a policy that allows no other script to run.

use std::fmt::Write;

use ring::digest::{SHA256, digest};

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");

/// The scripts in the order in which they are joined: each uses only names of itself and of earlier ones.
const SCRIPTS: [&str; 5] = [
    include_str!("page/base.js"),
    include_str!("page/chart.js"),
    include_str!("page/keys.js"),
    include_str!("page/detail.js"),
    include_str!("page/main.js"),
];

/// The placeholders in the page for the style and for the script.
const STYLE_MARK: &str = "/*STYLE*/";
const SCRIPT_MARK: &str = "/*SCRIPT*/";

/// The document, and its `Content-Security-Policy`.
#[derive(Debug)]
pub struct Page {
    pub html: String,
    pub policy: String,
}

/// The directives that forbid every page to use a base URL, to send forms, and to be framed by other pages.
const CLOSED: &str = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

impl Page {
    /// Builds the page, with a policy that allows only its own style and script, by their hashes, and requests only to
    /// its own origin. The policy requires trusted types and allows none, so that scripts cannot turn text into markup.
    pub fn new() -> Self {
        let script = SCRIPTS.concat();
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; \
             {CLOSED}; require-trusted-types-for 'script'; trusted-types 'none'",
            hash(&script),
            hash(STYLE),
        );
        Page { html: DOCUMENT.replacen(STYLE_MARK, STYLE, 1).replacen(SCRIPT_MARK, &script, 1), policy }
    }
}

impl Page {
    /// A page with this title and body, without a script.
    pub fn from_text(title: &str, body: &str) -> Self {
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<main class=\"text\">\n{body}</main>\n</html>\n"
        );
        Page { html, policy: format!("default-src 'none'; style-src 'sha256-{}'; {CLOSED}", hash(STYLE)) }
    }
}

/// The SHA-256 of a text, in base 64.
fn hash(text: &str) -> String {
    base64(digest(&SHA256, text.as_bytes()).as_ref())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) as usize % 64;
            let shown = if digit <= group.len() { char::from(DIGITS[value]) } else { '=' };
            // Writing to a `String` does not fail.
            let _ = write!(text, "{shown}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_in_base_64() {
        // The texts are from RFC 4648, section 10, followed by the hash that policies have for an empty script.
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn the_page_loads_nothing_from_other_hosts() {
        let Page { html, policy } = Page::new();
        assert!(!html.contains(STYLE_MARK) && !html.contains(SCRIPT_MARK));
        assert_eq!(html.matches("<script").count(), 1);
        assert_eq!(html.matches("<style").count(), 1);
        // The only addresses in the page are the names of XML namespaces for pictures.
        let addresses: Vec<&str> =
            html.split("http").skip(1).map(|rest| rest.split(['\'', '"']).next().unwrap_or("")).collect();
        assert_eq!(addresses, ["://www.w3.org/2000/svg"; 2]);
        // No script turns text into markup, and the markup contains no event handlers.
        for forbidden in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " onclick=", "style=\""]
        {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}
