//! The pages of the documentation and their fenced blocks.

use std::fs;
use std::path::Path;

use tenon_testkit::repository_root;

/// A page of Markdown.
pub(crate) struct Page {
    /// Relative to the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A fenced block.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    /// What follows the opening fence, such as `sh not-run=network`.
    pub(crate) info: String,
    pub(crate) text: String,
    /// The lines between the fences, counted from zero, without the fences.
    pub(crate) lines: std::ops::Range<usize>,
}

impl Page {
    pub(crate) fn read(path: &str) -> Self {
        let text = fs::read_to_string(repository_root().join(path)).unwrap();
        Self { path: path.to_owned(), text }
    }

    /// The pages for users and contributors, sorted; decision records have no commands.
    pub(crate) fn all() -> Vec<Self> {
        let mut paths = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "SECURITY.md".to_owned()];
        for entry in fs::read_dir(repository_root().join("docs")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
                paths.push(format!("docs/{name}"));
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines().enumerate();
        while let Some((start, line)) = lines.next() {
            let Some(info) = line.strip_prefix("```") else { continue };
            let content: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            blocks.push(Block {
                info: info.to_owned(),
                text: content.iter().map(|line| format!("{line}\n")).collect(),
                lines: start + 1..start + 1 + content.len(),
            });
        }
        blocks
    }

    /// The text with other lines in some blocks. Blocks are given in order.
    pub(crate) fn with_blocks(&self, replacements: &[(&Block, String)]) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut text = String::new();
        let mut next = 0;
        for (block, content) in replacements {
            lines[next..block.lines.start].iter().for_each(|line| text.push_str(&format!("{line}\n")));
            text.push_str(content.trim_end());
            text.push('\n');
            next = block.lines.end;
        }
        lines[next..].iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text
    }
}

#[test]
fn blocks_are_found_and_replaced() {
    let text = "a\n```sh\nx\ny\n```\nb\n```text answer\nold\n```\nc\n".to_owned();
    let page = Page { path: "p".into(), text };
    let blocks = page.blocks();
    assert_eq!(blocks[0], Block { info: "sh".into(), text: "x\ny\n".into(), lines: 2..4 });
    assert_eq!(blocks[1].info, "text answer");
    let replaced = page.with_blocks(&[(&blocks[1], "new\nlines\n".into())]);
    assert_eq!(replaced, page.text.replace("old", "new\nlines"));
}
