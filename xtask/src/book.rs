//! The preprocessor of the book, which mdBook runs (`book.toml`): JSON on stdin, JSON on stdout.
//!
//! mdBook renders only the pages in `SUMMARY.md`, and copies no file from outside of `docs`. So the decision records, which
//! pages link to, are added as chapters, and links to other files of the repository become text, or links to the address in
//! `preprocessor.repository.url` if there is one.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::{Value, json};

use crate::shell::{Error, print, repository};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// `supports`, when mdBook asks whether a renderer is supported
    question: Option<String>,
    /// The renderer
    renderer: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    if options.question.is_some() {
        // Links are the same for every renderer.
        return Ok(true);
    }
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let invalid = |error| Error::new(format!("invalid input: {error}")).hint("run `mdbook build`");
    let (context, mut book): (Value, Value) = serde_json::from_str(&input).map_err(invalid)?;
    let url = context["config"]["preprocessor"]["repository"]["url"].as_str();
    process(&mut book, url)?;
    print(&book.to_string());
    Ok(true)
}

/// Adds the decision records, and changes links that leave the book.
fn process(book: &mut Value, url: Option<&str>) -> Result<(), Error> {
    // mdBook 0.5 calls them `items`, older versions `sections`.
    let name = if book["items"].is_array() { "items" } else { "sections" };
    let chapters = book[name].as_array_mut().ok_or_else(|| Error::new("the book has no chapters"))?;
    chapters.push(json!({"PartTitle": "Decisions"}));
    chapters.extend(decisions()?);
    chapters.iter_mut().for_each(|chapter| change_links(chapter, url));
    Ok(())
}

fn decisions() -> Result<Vec<Value>, Error> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(repository().join("docs/decisions"))? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(".md")));
    }
    names.sort();
    let chapter = |name: &String| {
        let content = fs::read_to_string(repository().join("docs/decisions").join(name))?;
        let title = content.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let path = format!("decisions/{name}");
        Ok(json!({"Chapter": {
            "name": title, "content": content, "number": null, "sub_items": [], "path": path,
            "source_path": path, "parent_names": [],
        }}))
    };
    names.iter().map(chapter).collect()
}

fn change_links(item: &mut Value, url: Option<&str>) {
    // A separator or the title of a part has no text.
    let Some(chapter) = item.get_mut("Chapter") else { return };
    let Some(page) = chapter["path"].as_str().map(|path| format!("docs/{path}")) else { return };
    if let Some(content) = chapter["content"].as_str() {
        chapter["content"] = json!(with_links_inside(content, &page, url));
    }
    if let Some(items) = chapter["sub_items"].as_array_mut() {
        items.iter_mut().for_each(|item| change_links(item, url));
    }
}

/// `text` of a page with its links to files outside of `docs` changed. Code blocks have no links.
fn with_links_inside(text: &str, page: &str, url: Option<&str>) -> String {
    let mut in_code = false;
    let mut changed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        in_code ^= line.starts_with("```");
        let line = if in_code { line.to_owned() } else { change_line(line, page, url) };
        changed.push_str(&line);
    }
    changed
}

fn change_line(line: &str, page: &str, url: Option<&str>) -> String {
    let mut changed = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, tail)) = after.split_once(')') else { break };
        let label = before.rfind('[');
        match (target_outside(page, target), label, url) {
            (Some(path), _, Some(url)) => changed.push_str(&format!("{before}]({url}/blob/main/{path})")),
            (Some(_), Some(label), None) => {
                changed.push_str(&before[..label]);
                changed.push_str(&before[label + 1..]);
            }
            _ => changed.push_str(&format!("{before}]({target})")),
        }
        rest = tail;
    }
    changed + rest
}

/// The path in the repository, if a link of `page` leaves the book: it leads out of `docs`, to a folder or to the summary.
fn target_outside(page: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with('#') || target.starts_with("mailto:") {
        return None;
    }
    let folder = Path::new(page).parent()?;
    let mut parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let is_page = parts.first() == Some(&"docs")
        && parts.last().is_some_and(|name| name.contains('.') && *name != "SUMMARY.md");
    (!is_page).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The book as mdBook passes it, with the pages of `docs/SUMMARY.md`.
    fn book() -> Value {
        let summary = fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
        let paths = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let chapter = |path: &str| {
            let content = fs::read_to_string(repository().join("docs").join(path)).unwrap();
            json!({"Chapter": {"name": path, "content": content, "path": path, "sub_items": []}})
        };
        let other = [json!("Separator"), json!({"PartTitle": "Part"})];
        json!({"sections": other.into_iter().chain(paths.map(chapter)).collect::<Vec<_>>()})
    }

    /// The id that mdBook gives to a heading.
    fn id(heading: &str) -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    }

    #[test]
    fn separators_and_titles_stay_as_they_are() {
        let (before, mut after) = (book(), book());
        process(&mut after, None).unwrap();
        assert_eq!(after["sections"].as_array().unwrap()[..2], before["sections"].as_array().unwrap()[..2]);
    }

    #[test]
    fn every_link_of_the_book_leads_to_a_page_and_its_heading() {
        let mut book = book();
        process(&mut book, None).unwrap();
        let chapters = book["sections"].as_array().unwrap();
        let pages: BTreeMap<String, &str> = chapters
            .iter()
            .filter_map(|item| {
                Some((item["Chapter"]["path"].as_str()?, item["Chapter"]["content"].as_str()?))
            })
            .map(|(path, text)| (format!("docs/{path}"), text))
            .collect();
        assert!(pages.len() > 90, "pages and decisions: {}", pages.len());
        let ids = |text: &str| -> BTreeSet<String> {
            text.lines().filter(|line| line.starts_with('#')).map(id).collect()
        };
        let mut dead = Vec::new();
        for (page, text) in &pages {
            let mut in_code = false;
            for line in text.lines() {
                in_code ^= line.starts_with("```");
                let targets =
                    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(t, _)| t);
                for target in targets.filter(|target| !in_code && !target.contains("://")) {
                    let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
                    let folder = Path::new(page).parent().unwrap();
                    let path = if file.is_empty() { page.clone() } else { normal(&folder.join(file)) };
                    let is_there = match pages.get(&path) {
                        Some(text) => anchor.is_none_or(|anchor| ids(text).contains(anchor)),
                        // mdBook copies other files, such as images.
                        None => !file.ends_with(".md") && repository().join(&path).is_file(),
                    };
                    if !is_there || target_outside(page, target).is_some() {
                        dead.push(format!("{page}: {target}"));
                    }
                }
            }
        }
        assert!(dead.is_empty(), "{dead:#?}");
    }

    fn normal(path: &Path) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.iter().filter_map(|part| part.to_str()) {
            match part {
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        parts.join("/")
    }

    #[test]
    fn links_out_of_the_book_become_text_or_addresses() {
        let text = "see [the test](../crates/a.rs), [edits](edits.md#x) and [a](https://x.org)\n```\n[b](../c)\n```\n";
        assert_eq!(
            with_links_inside(text, "docs/security.md", None),
            "see the test, [edits](edits.md#x) and [a](https://x.org)\n```\n[b](../c)\n```\n"
        );
        let linked = with_links_inside(text, "docs/security.md", Some("https://example.org/tenon"));
        assert!(
            linked.starts_with("see [the test](https://example.org/tenon/blob/main/crates/a.rs), "),
            "{linked}"
        );
        assert_eq!(with_links_inside("[all](decisions)", "docs/README.md", None), "all");
        let record = "[pages](../agents.md), [code](../../crates/a.rs)";
        assert_eq!(with_links_inside(record, "docs/decisions/0001.md", None), "[pages](../agents.md), code");
    }
}
