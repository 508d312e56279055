//! Tests the dashboard in a real browser, on real servers.
//!
//! `ROLLCALL_BROWSER` names a Chromium. Without it, these tests do nothing.

use serde_json::{Value, json};

use crate::dashboard::state;
use crate::devtools::Browser;
use crate::pages::Pages;
use crate::{add_grown, server_on, started, tool, url};
use rollcall_testkit::{Server, add_many, cluster};

/// A key name that contains markup. The script in it would run if the page did not escape the name.
const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// The widths of a desktop screen and of a phone, and the height of both.
const DESK: u32 = 1360;
const PHONE: u32 = 360;
const HEIGHT: u32 = 900;

/// The contrast between text and background that WCAG 2 requires (level AA, section 1.4.3).
const LEAST_CONTRAST: f64 = 4.5;

/// Keys of the keyboard, each with its name and its Windows key code.
const ESCAPE: (&str, u32) = ("Escape", 27);
const LEFT: (&str, u32) = ("ArrowLeft", 37);
const SPACE: (&str, u32) = (" ", 32);

/// Returns the texts whose contrast to their background is below `least`.
const TOO_FAINT: &str = r#"(least) => {
    const parse = (color) => color.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((part) => part / 255).map((part) =>
            (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const ground = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const color = parse(getComputedStyle(at).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const faint = [];
    for (const node of document.querySelectorAll('body *')) {
        const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        if (!hasText || !node.checkVisibility() || node.closest('script, style')) continue;
        const style = getComputedStyle(node);
        const color = parse(node.namespaceURI.endsWith('svg') ? style.fill : style.color);
        const [a, b] = [light(color), light(ground(node))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const name = `${node.tagName}.${node.className} ${node.textContent}`;
        if (contrast < least) faint.push(`${name} ${contrast.toFixed(2)}`);
    }
    return faint;
}"#;

/// Returns the elements whose content is wider than they are.
const STICKS_OUT: &str = "\
    [document.documentElement, ...document.querySelectorAll('.table, dialog[open], .card, .finding')]\
    .filter((node) => node.scrollWidth > node.clientWidth).map((node) => `${node.tagName}.${node.className}`)";

/// Opens the dashboard at a desktop's size, and waits until it has been drawn.
fn open(browser: &mut Browser, pages: &Pages) {
    browser.look(DESK, HEIGHT, "light");
    browser.open(&format!("http://{}/", pages.address()));
    browser
        .wait("document.querySelector('#status')?.dataset.state === 'live' && !!document.querySelector('#cards svg')");
}

/// Panics if a control has no name for screen readers.
#[track_caller]
fn assert_named(browser: &mut Browser) {
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let controls = ["button", "link", "searchbox", "checkbox", "combobox", "dialog", "img"];
    let mut named = 0;
    for node in tree["nodes"].as_array().expect("nodes").iter().filter(|node| node["ignored"] == false) {
        if !controls.contains(&node["role"]["value"].as_str().unwrap_or_default()) {
            continue;
        }
        let name = node["name"]["value"].as_str().unwrap_or_default();
        assert!(!name.trim().is_empty(), "no name: {node}");
        named += 1;
    }
    assert!(named > 20, "{named} controls were found");
}

#[track_caller]
fn assert_readable(browser: &mut Browser) {
    let faint = browser.eval(&format!("({TOO_FAINT})({LEAST_CONTRAST})"));
    assert_eq!(faint, json!([]));
}

/// Returns the texts that stand for further equal findings.
const ALIKE: &str = "[...document.querySelectorAll('#findings .alike summary')].map((summary) => summary.textContent)";

/// Presses the first copy button, once with and once without clipboard access, and follows the link to the
/// explanation.
#[track_caller]
fn copies_and_explains(browser: &mut Browser) {
    let first = browser.text("#findings code");
    assert!(first.starts_with("BF.RESERVE "), "{first}");
    let to_clipboard = "navigator.clipboard.writeText = async (text) => { window.copied = text; }";
    let to_selection = "navigator.clipboard.writeText = async () => { throw Error('no'); }; \
                        addEventListener('copy', () => { window.copied = String(getSelection()); }, { once: true })";
    for way in [to_clipboard, to_selection] {
        browser.eval(&format!(
            "(() => {{ window.copied = null; {way}; document.querySelector('#findings .copy').focus(); }})()"
        ));
        // Browsers allow copying only after a key press or click of the user.
        browser.press(SPACE);
        browser.wait(&format!(
            "window.copied === {} && document.querySelector('#findings .copy').textContent === 'Copied'",
            json!(first)
        ));
        browser.wait("document.querySelector('#findings .copy').textContent === 'Copy'");
    }
    let explained = "(async () => { const links = [...document.querySelectorAll('#findings .meaning')]; \
                     const page = await (await fetch(links[0].href)).text(); \
                     return links.length > 0 && \
                     links.every((link) => page.includes(`id=\"${link.hash.slice(1)}\"`)); })()";
    assert_eq!(browser.eval(explained), true);
}

#[test]
fn the_page_shows_what_is_wrong_first_and_runs_nothing_of_a_name() {
    let Some(mut browser) = Browser::start() else { return };
    let (_server, mut client, to) = started();
    add_grown(&mut client);
    client.expect("BF.RESERVE tight 0.01 1000 NONSCALING", "+OK");
    add_many(&mut client, "BF.MADD tight", "item:", 0..985);
    client.expect("LC.RESERVE day WINDOW 86400 SLICES 24", "+OK");
    add_many(&mut client, "LC.ADD day", "member:", 0..3000);
    add_many(&mut client, "LC.ADD few", "member:", 0..320);
    // A notice.
    client.expect("CONFIG SET maxmemory-policy allkeys-lru", "+OK");
    client.expect("CONFIG SET maxmemory 1gb", "+OK");
    // Two equal warnings; the advice of the second contains markup.
    client.call(&["BF.RESERVE", HOSTILE, "0.01", "100"]);
    let items: Vec<String> = (0..4000).map(|item| item.to_string()).collect();
    client.call(&["BF.MADD", HOSTILE].into_iter().chain(items.iter().map(String::as_str)).collect::<Vec<_>>());
    for key in 0..40 {
        add_many(&mut client, &format!("LC.ADD count:{key}"), "member:", 0..key + 1);
    }
    let pages = Pages::start(&["dashboard", "--url", &to, "--interval", "1"]);
    open(&mut browser, &pages);

    // Findings are at the top of the page, the most urgent first, in the words of the `health` module.
    let tops = browser
        .eval("['#wrong', '#cards', '#keys'].map((id) => document.querySelector(id).getBoundingClientRect().top)");
    let tops: Vec<f64> = serde_json::from_value(tops).expect("three numbers");
    assert!(tops[0] < 100.0 && tops[0] < tops[1] && tops[1] < tops[2], "{tops:?}");
    let severities =
        browser.eval("[...document.querySelectorAll('#findings .badge')].map((badge) => badge.textContent)");
    let rank = |severity: &Value| ["Critical", "Warning", "Notice"].iter().position(|word| severity == word);
    let ranks: Vec<_> = severities.as_array().expect("a list").iter().map(rank).collect();
    assert!(ranks.len() == 3 && ranks.is_sorted() && ranks.iter().all(Option::is_some), "{severities}");
    // Equal findings share a line with a list of keys. An opened list stays open when the page is redrawn.
    assert_eq!(browser.eval(ALIKE), json!(["and 1 more key alike"]));
    browser.eval("document.querySelectorAll('.alike summary').forEach((summary) => summary.click())");
    browser.wait("document.querySelectorAll('#findings .alike li').length === 1");
    add_many(&mut client, "BF.MADD tight", "more:", 0..3);
    browser.wait("document.querySelector('#findings').textContent.includes('tight holds 98.8 %')");
    browser.wait("document.querySelectorAll('#findings .alike li').length === 1");
    let top = tool(&["--json", "top", "--url", &to]).expect(0).json();
    let shown = browser.text("#findings");
    for row in top.as_array().expect("rows") {
        for finding in row["findings"].as_array().expect("findings") {
            let words = format!(
                "{} {}",
                row["key"].as_str().unwrap_or_default(),
                finding["wrong"].as_str().unwrap_or_default()
            );
            assert!(shown.contains(&words), "{words} is not in {shown}");
            let command = finding["command"].as_str().unwrap_or_default();
            assert!(shown.contains(command), "{command} is not in {shown}");
        }
    }
    copies_and_explains(&mut browser);
    // The markup in the key's name has created no elements.
    assert_eq!(browser.eval("document.querySelectorAll('img, iframe, object').length"), 0);
    let names = format!(
        "[...document.querySelectorAll('td.key a')].filter((link) => link.textContent === {}).length",
        json!(HOSTILE)
    );
    assert_eq!(browser.eval(&names), 1);

    // Sorted, filtered.
    assert_eq!(browser.eval("document.querySelectorAll('#rows tr').length"), 45);
    browser.eval(
        "[...document.querySelectorAll('#heads button')].find((head) => head.textContent.startsWith('Items')).click()",
    );
    assert_eq!(browser.text("th[aria-sort]").split(['↑', '↓']).next(), Some("Items"));
    let items = browser.eval(
        "[...document.querySelectorAll('#rows tr')]\
         .map((row) => Number(row.cells[2].firstChild.textContent.replaceAll(',', '')))",
    );
    let items: Vec<f64> = serde_json::from_value(items).expect("numbers");
    assert!(items.is_sorted_by(|a, b| a >= b), "{items:?}");
    let type_in = |text: &str| {
        format!(
            "(() => {{ const field = document.querySelector('#search'); field.value = {}; \
             field.dispatchEvent(new Event('input')); }})()",
            json!(text)
        )
    };
    browser.eval(&type_in("ONERROR"));
    assert_eq!(browser.eval("document.querySelectorAll('#rows tr').length"), 1);
    assert!(browser.text("#keys-count").starts_with("1 of 45"));
    browser.eval(&type_in(""));

    // The page shows a new key without being reloaded.
    add_many(&mut client, "LC.ADD fresh", "member:", 0..7);
    browser.wait("[...document.querySelectorAll('td.key a')].some((link) => link.textContent === 'fresh')");

    // The dialog of one key: its charts, and values that are picked with the mouse and with the keyboard.
    browser.eval("[...document.querySelectorAll('td.key a')].find((link) => link.textContent === 'day').click()");
    browser.wait("document.querySelectorAll('#detail[open] .stem').length === 25");
    browser.wait("document.querySelectorAll('#detail .chart svg').length === 4");
    assert_eq!(browser.text("#detail-key"), "day");
    let members = client.int("LC.COUNT day");
    let grouped = format!("{},{:03}", members / 1000, members % 1000);
    browser.hover("#detail-charts section:nth-child(1) .chart");
    browser.wait("!document.querySelector('#detail-charts section:nth-child(1) .tip').hidden");
    let tip = browser.text("#detail-charts section:nth-child(1) .tip");
    assert!(tip.contains(&format!("members {grouped}")) && !tip.contains("capacity"), "{tip}");
    browser.eval("document.querySelector('#detail-charts section:nth-child(4) .space').focus()");
    browser.press(LEFT);
    let tip = browser.text("#detail-charts section:nth-child(4) .tip");
    assert!(tip.starts_with(&format!("{grouped} members")) && tip.contains("last 2 h at most"), "{tip}");
    assert_readable(&mut browser);
    browser.look(PHONE, HEIGHT, "light");
    assert_eq!(browser.eval(STICKS_OUT), json!([]));
    browser.press(ESCAPE);
    browser.wait("!document.querySelector('#detail').open && !location.hash");

    // Checks layout, contrast and names for screen readers at widths from phone to desktop, in both colour schemes.
    for width in [PHONE, 480, 761, 820, 1000, 1100] {
        browser.look(width, HEIGHT, "light");
        browser.wait(&format!("innerWidth === {width} && ({STICKS_OUT}).length === 0"));
        assert_eq!(browser.eval("document.documentElement.scrollWidth"), width);
    }
    let mut pictures = Vec::new();
    for scheme in ["light", "dark"] {
        browser.look(DESK, HEIGHT, scheme);
        browser.wait("innerWidth === 1360");
        assert_readable(&mut browser);
        let ground = browser.eval("getComputedStyle(document.body).backgroundColor");
        pictures.push((ground, browser.picture()));
    }
    assert!(pictures[0].0 != pictures[1].0 && pictures[0].1 != pictures[1].1, "{}", pictures[0].0);
    assert_named(&mut browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // The page's policy blocks an inline script, and the block is recorded. So earlier violations would have been
    // found.
    browser.eval(
        "(() => { const script = document.createElement('div'); \
         try { script.innerHTML = '<img src=x>'; } catch { return; } throw Error('markup of text'); })()",
    );
    browser.wait("window.violations.length > 0");
    assert!(browser.complaints().iter().any(|complaint| complaint.contains("trusted")), "{:?}", browser.complaints());
}

#[test]
fn the_page_says_since_when_nothing_is_reached() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("server.sock").display().to_string();
    let start = || server_on(&socket);
    let mut failing = start();
    let pages = Pages::start(&["dashboard", "--url", &format!("redis+unix://{socket}"), "--interval", "1"]);
    open(&mut browser, &pages);
    assert_eq!(browser.eval("document.querySelector('#trouble').hidden"), true);
    assert!(browser.text("#findings").contains("all are as they should be"), "{}", browser.text("#findings"));
    // An answer that is a minute old stands for a poll that does not end.
    let old = "(() => { const real = fetch; window.fetch = async (...request) => { \
               const json = await (await real(...request)).json(); \
               if (json.state) json.state.looked -= 60_000; return { ok: true, json: async () => json }; }; })()";
    browser.eval(old);
    browser.wait("document.querySelector('#trouble').textContent.includes(' has not answered since ')");
    open(&mut browser, &pages);
    failing.shutdown("SHUTDOWN NOSAVE");
    browser.wait(
        "!document.querySelector('#trouble').hidden && document.querySelector('#status').dataset.state === 'lost'",
    );
    let trouble = browser.text("#trouble");
    for part in
        [&format!("The server {socket} cannot be reached since "), "What is below was seen at ", "Cannot connect"]
    {
        assert!(trouble.contains(part), "{part} is not in {trouble}");
    }
    // Without an answer the page must not say that all is well.
    let findings = browser.text("#findings");
    assert!(findings.starts_with(&format!("CriticalThe server {socket} cannot be reached since ")), "{findings}");
    assert_eq!(browser.eval("document.querySelectorAll('#findings .fine').length"), 0);
    assert_eq!(browser.text("td.key a"), "visitors");
    assert_readable(&mut browser);
    browser.look(PHONE, HEIGHT, "dark");
    assert_readable(&mut browser);
    browser.wait("innerWidth === 360");
    assert_eq!(browser.eval(STICKS_OUT), json!([]));
    let _again = start();
    browser.wait(
        "document.querySelector('#trouble').hidden && document.querySelector('#status').dataset.state === 'live'",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
    drop(pages);
    browser.wait(
        "document.querySelector('#trouble').textContent.includes('The dashboard does not answer any more since ')",
    );
    assert!(browser.text("#findings").contains("The dashboard does not answer any more since "));
    assert_eq!(browser.eval("document.querySelectorAll('#findings .fine').length"), 0);
    // A server that has never answered.
    let pages = Pages::start(&["dashboard", "--url", "redis://127.0.0.1:1", "--interval", "1"]);
    browser.open(&format!("http://{}/", pages.address()));
    browser.wait(
        "document.querySelector('#findings')?.textContent.startsWith('CriticalThe server 127.0.0.1:1 cannot be')",
    );
    assert_eq!(browser.eval("document.querySelectorAll('#findings .fine').length"), 0);
    browser.wait(
        "document.querySelector('#trouble').textContent.startsWith('The server 127.0.0.1:1 cannot be reached since ')",
    );
    // A server that answers with an error.
    let server = Server::start();
    server.client().expect("ACL SETUSER default -scan", "+OK");
    let pages = Pages::start(&["dashboard", "--url", &url(&server), "--interval", "1"]);
    browser.open(&format!("http://{}/", pages.address()));
    browser.wait(&format!(
        "document.querySelector('#trouble')?.textContent.startsWith('The server 127.0.0.1:{} cannot be read since ')",
        server.port()
    ));
    assert!(browser.text("#findings").starts_with("WarningThe server 127.0.0.1:"), "{}", browser.text("#findings"));
    assert_eq!(browser.text("#status-text"), "Not read");
}

#[test]
fn a_thousand_keys_are_shown_in_part_and_the_rest_is_counted() {
    let Some(mut browser) = Browser::start() else { return };
    let (server, mut client) = Server::start().with_client();
    let commands: Vec<_> =
        (0..1203).map(|key| ["LC.ADD".to_owned(), format!("count:{key:04}"), "ann".to_owned()].to_vec()).collect();
    client.pipeline(&commands);
    client.expect("BF.RESERVE zzz:full 0.01 100 NONSCALING", "+OK");
    let pages = Pages::start(&["dashboard", "--url", &url(&server), "--interval", "1"]);
    assert_eq!(state(&pages)["rows"].as_array().map(Vec::len), Some(1000));
    open(&mut browser, &pages);
    assert!(browser.text("#keys-count").contains("204 more left out"), "{}", browser.text("#keys-count"));
    assert!(browser.text("#findings").starts_with("Nothing1,204 keys were looked at"), "{}", browser.text("#findings"));
    assert_eq!(browser.eval("document.querySelectorAll('#rows tr').length"), 150);
    assert_eq!(browser.text("#rows-more"), "Show 150 more of 850");
    browser.eval("document.querySelector('#rows-more').click()");
    assert_eq!(browser.eval("document.querySelectorAll('#rows tr').length"), 300);
    // The key that sorts last is not drawn, but it is full, so its finding is shown.
    add_many(&mut client, "BF.MADD zzz:full", "item:", 0..100);
    browser.wait("document.querySelector('#findings').textContent.startsWith('Criticalzzz:full ')");
    assert_eq!(browser.text("td.key a"), "zzz:full");
    assert!(browser.text("#keys-count").starts_with("1,001 · 203 more left out"), "{}", browser.text("#keys-count"));
    // The page shows no tick until all keys have been judged.
    let few = Pages::start(&[
        "dashboard",
        "--url",
        &url(&server),
        "--interval",
        "1",
        "--max-keys",
        "1",
        "--pattern",
        "count:*",
    ]);
    browser.open(&format!("http://{}/", few.address()));
    browser.wait("document.querySelector('#findings')?.textContent.startsWith('Nothing so far')");
    assert_eq!(browser.eval("document.querySelectorAll('#findings .fine').length"), 0);
    assert!(browser.text("#findings").contains(" of 1,203 keys have been looked at"), "{}", browser.text("#findings"));
    open(&mut browser, &pages);
    // A search finds a key that is not drawn.
    browser.eval(
        "(() => { const field = document.querySelector('#search'); field.value = ':0999'; \
         field.dispatchEvent(new Event('input')); })()",
    );
    assert_eq!(browser.eval("document.querySelectorAll('#rows tr').length"), 1);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_page_says_that_it_shows_one_node_of_a_cluster() {
    let Some(mut browser) = Browser::start() else { return };
    let nodes = cluster(1);
    let pages = Pages::start(&["dashboard", "--url", &url(&nodes[0]), "--interval", "1"]);
    open(&mut browser, &pages);
    let findings = browser.text("#findings");
    assert!(findings.contains(" is one node of a cluster, whose other keys are not listed"), "{findings}");
    assert!(findings.ends_with("Start the dashboard with --cluster"), "{findings}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
