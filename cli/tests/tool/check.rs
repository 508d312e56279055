//! `check` and `info`.

use crate::run::{Folder, items};

#[test]
fn a_filter_is_checked_against_its_items_and_others() {
    let folder = Folder::new();
    folder.write("items", items(5000).join("\n"));
    folder.write("others", (0..20_000).map(|number| format!("other {number}\n")).collect::<String>());
    assert_eq!(folder.run("build filter seen items").code, 0);
    let answer = folder.json("check seen items --absent others --threads 2 --block-bytes 999");
    assert_eq!((&answer["kind"], &answer["present"]["missing"]), (&"filter".into(), &0.into()));
    assert_eq!(answer["absent"]["items"], 20_000);
    let (measured, bound) = (&answer["absent"]["measured_rate"], &answer["absent"]["bound"]);
    // The bound is 4 standard errors of 20,000 trials at a rate of 0.01.
    assert!((bound.as_f64().unwrap() - 0.012814).abs() < 1e-5, "{bound}");
    assert!(measured.as_f64().unwrap() <= 0.0128, "{measured}");

    let ran = folder.run("check seen others");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("of 20,000 items are missing, the first of them:\n  other 0\n"), "{}", ran.out);
    assert!(ran.err.contains("items are missing"), "{}", ran.err);
    // All items of `--absent` are in the filter, so the rate is 1.
    let ran = folder.run("check seen --absent items");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("errs for 100 % of the absent items"), "{}", ran.err);
}

#[test]
fn a_counter_is_checked_against_the_distinct_items() {
    let folder = Folder::new();
    let items = items(30_000);
    let distinct = items.iter().filter(|item| !item.is_empty()).collect::<std::collections::HashSet<_>>().len();
    folder.write("items", items.join("\n"));
    assert_eq!(folder.run("build counter visitors items").code, 0);
    let answer = folder.json("check visitors items --threads 3 --block-bytes 777");
    assert_eq!(answer["distinct"], distinct);
    assert!(answer["standard_errors"].as_f64().unwrap() <= 4.0, "{answer}");
    let ran = folder.run(&format!("check visitors --distinct {}", distinct * 2));
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(folder.run(&format!("check visitors --distinct {distinct}")).code, 0);
    assert_eq!(folder.run("check visitors --distinct 5 items").code, 2);
    let ran = folder.run("check visitors items --within 0");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("standard errors, more than 0"), "{}", ran.err);

    folder.write("few", "ann\nben\n");
    folder.write("more", "ann\nben\ncid\n");
    assert_eq!(folder.run("build counter exact few").code, 0);
    assert_eq!(folder.run("check exact few").code, 0);
    let ran = folder.run("check exact more");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the counter is exact, and off by -1"), "{}", ran.err);
}

#[test]
fn info_reports_what_the_server_reports() {
    let folder = Folder::new();
    folder.write("items", items(1000).join("\n"));
    assert_eq!(folder.run("build filter seen items --capacity 100 --error 0.1% --key seen").code, 0);
    let info = folder.json("info seen");
    assert_eq!((&info["checksums"], &info["bytes"]), (&"verified".into(), &folder.read("seen").len().into()));
    let value = &info["values"][0];
    assert_eq!(
        (&value["Kind"], &value["Key"], &value["Error rate"]),
        (&"filter".into(), &"seen".into(), &0.001.into())
    );
    assert!(value["Number of filters"].as_u64().unwrap() > 1);
    let text = folder.run("info seen").out;
    assert!(text.contains("checksums verified") && text.contains("Layout                    lines"), "{text}");
}
