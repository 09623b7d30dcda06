//! The order of the book: `docs/SUMMARY.md`, as mdBook reads it.

use std::collections::BTreeSet;

use crate::page::Page;

#[test]
fn summary_lists_every_page_once() {
    let summary = Page::read("docs/SUMMARY.md").text;
    let listed: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let unique: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let pages = Page::all();
    let pages = pages.iter().filter_map(|page| page.path.strip_prefix("docs/"));
    let pages: BTreeSet<&str> = pages.filter(|page| *page != "SUMMARY.md").collect();
    assert_eq!(unique, pages, "add new pages to docs/SUMMARY.md");
}
