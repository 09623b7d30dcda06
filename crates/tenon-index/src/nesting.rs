//! What surrounds each declaration: decorators, attributes, comments, and nodes such as `export`.
//!
//! One walk over the tree, without recursion and without asking nodes for their parents or neighbours: both are slow in
//! deep or wide trees.

use std::ops::Range;

use tree_sitter::Node;

use crate::language::LanguageRules;

/// What belongs to a declaration beside its own node.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings<'t> {
    /// The declaration, or the outermost wrapper around it.
    pub outer: Node<'t>,
    /// With attributes before it, and the semicolon after it.
    pub range: Range<usize>,
    pub attributes: Vec<Range<usize>>,
    /// The comments directly before it.
    pub doc: Option<Range<usize>>,
}

impl<'t> Surroundings<'t> {
    fn alone(node: Node<'t>) -> Self {
        Self { outer: node, range: node.byte_range(), attributes: Vec::new(), doc: None }
    }
}

/// The children of one node, as far as they were visited.
#[derive(Default)]
struct Level<'t> {
    /// If the node wraps the declaration among its children.
    wrapper: Option<Surroundings<'t>>,
    /// Declarations that took the wrapper, with what they have without it.
    wrapped: Vec<(usize, Surroundings<'t>)>,
    comments: Option<CommentRun>,
    attributes: Vec<Range<usize>>,
    /// The row where the last child ends, and the last row of the attributes.
    last_row: Option<usize>,
    last_declarations: Vec<usize>,
}

struct CommentRun {
    range: Range<usize>,
    last_row: usize,
}

/// For each of `declarations`, which are sorted by start, the outer before the inner.
pub(crate) fn surroundings<'t>(
    root: Node<'t>,
    declarations: &[Node<'t>],
    rules: &LanguageRules,
) -> Vec<Surroundings<'t>> {
    let mut found: Vec<Surroundings<'t>> =
        declarations.iter().map(|node| Surroundings::alone(*node)).collect();
    let mut levels = vec![Level::default()];
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let level = levels.last_mut().expect("a level for the root");
        let descend = level.visit(node, declarations, rules, &mut found);
        if let Some(inside) = descend
            && cursor.goto_first_child()
        {
            levels.push(inside);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if let Some(level) = levels.pop() {
                level.leave(declarations, &mut found);
            }
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

impl<'t> Level<'t> {
    /// Returns the level for the children if there are declarations among them.
    fn visit(
        &mut self,
        node: Node<'t>,
        declarations: &[Node<'t>],
        rules: &LanguageRules,
        found: &mut [Surroundings<'t>],
    ) -> Option<Level<'t>> {
        let kind = node.kind_id();
        let (first_row, last_row) = rows(node);
        if node.is_extra() && node.kind().ends_with("comment") {
            self.comment(node, first_row, last_row);
            return None;
        }
        if rules.attributes.contains(&kind) {
            self.attributes.push(node.byte_range());
            self.last_row = Some(last_row);
            return None;
        }
        if node.kind() == ";" {
            for index in self.last_declarations.drain(..) {
                if found[index].range.end == node.start_byte() {
                    found[index].range.end = node.end_byte();
                }
            }
        }
        let own = self.take(node, first_row);
        self.last_row = Some(last_row);
        self.last_declarations.clear();

        let start = declarations.partition_point(|other| other.start_byte() < node.start_byte());
        let end = declarations.partition_point(|other| other.start_byte() < node.end_byte());
        if start == end {
            return None;
        }
        let mut inside = false;
        for index in start..end {
            if declarations[index].id() != node.id() {
                inside = true;
                // The declarations of one node are neighbours.
                if declarations[index].start_byte() > node.start_byte() {
                    break;
                }
                continue;
            }
            found[index] = match &self.wrapper {
                Some(wrapper) => {
                    self.wrapped.push((index, own.clone()));
                    merge(wrapper, &own)
                }
                None => own.clone(),
            };
            self.last_declarations.push(index);
        }
        inside.then(|| {
            let wraps = rules.wrappers.contains(&kind);
            let outer = match &self.wrapper {
                Some(wrapper) if wraps => Some(merge(wrapper, &own)),
                _ => wraps.then_some(own),
            };
            Level { wrapper: outer, ..Level::default() }
        })
    }

    fn comment(&mut self, node: Node<'t>, first_row: usize, last_row: usize) {
        // A comment behind something on the same line is about that.
        if self.last_row == Some(first_row) {
            return;
        }
        match &mut self.comments {
            Some(run) if run.last_row + 1 >= first_row => {
                run.range.end = node.end_byte();
                run.last_row = last_row;
            }
            _ => self.comments = Some(CommentRun { range: node.byte_range(), last_row }),
        }
    }

    /// The comments and attributes directly before `node`.
    fn take(&mut self, node: Node<'t>, first_row: usize) -> Surroundings<'t> {
        let attributes = std::mem::take(&mut self.attributes);
        let start = attributes.first().map_or(node.start_byte(), |first| first.start);
        let next_row = match attributes.is_empty() {
            true => Some(first_row),
            // Comments before the attributes were checked against each other only by their order.
            false => None,
        };
        let attached = |run: &CommentRun| match next_row {
            Some(row) => run.last_row + 1 >= row,
            None => true,
        };
        let doc = self.comments.take().filter(attached).map(|run| run.range);
        Surroundings { outer: node, range: start..node.end_byte(), attributes, doc }
    }

    /// A wrapper of several declarations belongs to none of them.
    fn leave(self, declarations: &[Node<'t>], found: &mut [Surroundings<'t>]) {
        let mut nodes: Vec<usize> = self.wrapped.iter().map(|(index, _)| declarations[*index].id()).collect();
        nodes.dedup();
        if nodes.len() > 1 {
            let shared_doc = self.wrapper.and_then(|wrapper| wrapper.doc);
            for (index, own) in self.wrapped {
                found[index] = own;
                found[index].doc = found[index].doc.take().or(shared_doc.clone());
            }
        }
    }
}

fn merge<'t>(wrapper: &Surroundings<'t>, own: &Surroundings<'t>) -> Surroundings<'t> {
    Surroundings {
        outer: wrapper.outer,
        range: wrapper.range.start..wrapper.range.end.max(own.range.end),
        attributes: wrapper.attributes.iter().chain(&own.attributes).cloned().collect(),
        doc: own.doc.clone().or_else(|| wrapper.doc.clone()),
    }
}

/// The first and the last row. A comment may include the line break after it.
fn rows(node: Node<'_>) -> (usize, usize) {
    let (start, end) = (node.start_position(), node.end_position());
    let last = if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row };
    (start.row, last)
}
