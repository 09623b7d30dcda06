//! The graph of the memory as a picture: nodes on rings around the most connected one, the same for the same graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::f64::consts::TAU;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::html::escaped;

/// How many nodes are drawn. More cannot be read.
pub(crate) const MAX_NODES: usize = 60;

const SIZE: f64 = 720.0;
const RADIUS: f64 = 9.0;
/// Room for the titles beside the outermost nodes, and above and below them.
const MARGIN: [f64; 2] = [150.0, 28.0];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GraphNode {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) kind: String,
    /// The address that the node leads to.
    pub(crate) href: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GraphEdge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) rel: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<GraphNode>,
    pub(crate) edges: Vec<GraphEdge>,
    /// The node in the middle; the most connected one without it.
    #[serde(default)]
    pub(crate) centre: Option<String>,
}

/// Draws the graph. At most [`MAX_NODES`] nodes, nearest to the centre first.
pub(crate) fn graph(graph: &Graph) -> String {
    let places = places(graph);
    let ([left, top], [right, bottom]) = bounds(&places);
    let (width, height) = (right - left, bottom - top);
    let mut out = format!(
        "<svg class=\"graph\" viewBox=\"{left:.0} {top:.0} {width:.0} {height:.0}\" role=\"group\" \
         aria-label=\"Graph of {} nodes\">",
        places.len()
    );
    for edge in &graph.edges {
        if let (Some((x1, y1)), Some((x2, y2))) =
            (places.get(edge.from.as_str()), places.get(edge.to.as_str()))
        {
            let _ = write!(
                out,
                "<line class=\"edge\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\">\
                 <title>{}</title></line>",
                escaped(&format!("{} {} {}", edge.from, edge.rel, edge.to))
            );
        }
    }
    for node in &graph.nodes {
        let Some((x, y)) = places.get(node.id.as_str()) else { continue };
        let left = *x < SIZE / 2.0 - 1.0;
        let (anchor, shift) = if left { ("end", -RADIUS - 5.0) } else { ("start", RADIUS + 5.0) };
        let title = if node.title.is_empty() { &node.id } else { &node.title };
        let _ = write!(
            out,
            "<a href=\"{}\" class=\"node kind-{}\"><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\">\
             <title>{}</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text></a>",
            escaped(&node.href),
            colour(&node.kind),
            escaped(&format!("{}: {title}", node.kind)),
            x + shift,
            y + 4.0,
            escaped(&short(title)),
        );
    }
    out.push_str("</svg>");
    out
}

/// The part of the plane with all nodes and their titles.
fn bounds(places: &BTreeMap<&str, (f64, f64)>) -> ([f64; 2], [f64; 2]) {
    let middle = SIZE / 2.0;
    let (mut least, mut most) = ([middle; 2], [middle; 2]);
    for (x, y) in places.values() {
        least = [least[0].min(*x), least[1].min(*y)];
        most = [most[0].max(*x), most[1].max(*y)];
    }
    let [across, along] = MARGIN;
    ([least[0] - across, least[1] - along], [most[0] + across, most[1] + along])
}

fn places(graph: &Graph) -> BTreeMap<&str, (f64, f64)> {
    let mut near: BTreeMap<&str, BTreeSet<&str>> =
        graph.nodes.iter().map(|node| (node.id.as_str(), BTreeSet::new())).collect();
    for edge in &graph.edges {
        if near.contains_key(edge.from.as_str()) && near.contains_key(edge.to.as_str()) {
            near.entry(&edge.from).or_default().insert(&edge.to);
            near.entry(&edge.to).or_default().insert(&edge.from);
        }
    }
    let by_degree = |id: &&str| (std::cmp::Reverse(near[*id].len()), (*id).to_owned());
    let mut left: Vec<&str> = near.keys().copied().collect();
    left.sort_by_key(by_degree);
    if let Some(centre) = graph.centre.as_deref().and_then(|centre| left.iter().position(|id| *id == centre))
    {
        let id = left.remove(centre);
        left.insert(0, id);
    }
    // Breadth first from the centre, then from what it does not reach.
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    for start in left {
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            if order.len() < MAX_NODES && seen.insert(id) {
                order.push(id);
                queue.extend(near[id].iter().copied());
            }
        }
    }
    let middle = SIZE / 2.0;
    let mut places = BTreeMap::new();
    let mut rest = order.as_slice();
    for (ring, room) in [(0, 1), (1, 8), (2, 18), (3, 33)] {
        let (now, later) = rest.split_at(rest.len().min(room));
        let radius = f64::from(ring) * 88.0;
        for (index, id) in now.iter().enumerate() {
            let angle = TAU * (index as f64 + 0.35 * f64::from(ring)) / now.len().max(1) as f64;
            places.insert(*id, (middle + radius * angle.cos(), middle + radius * angle.sin()));
        }
        rest = later;
    }
    places
}

/// One of six colours, the same for the same kind.
fn colour(kind: &str) -> u32 {
    kind.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) % 6
}

fn short(title: &str) -> String {
    match title.char_indices().nth(18) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star(count: usize) -> Graph {
        let node = |number: usize| GraphNode {
            id: format!("n{number:06}"),
            title: format!("<b>{number}"),
            kind: "fact".to_owned(),
            href: "/console/memory".to_owned(),
        };
        let edge = |number: usize| GraphEdge {
            from: "n000000".to_owned(),
            to: format!("n{number:06}"),
            rel: "supports".to_owned(),
        };
        Graph { nodes: (0..count).map(node).collect(), edges: (1..count).map(edge).collect(), centre: None }
    }

    #[test]
    fn picture_is_bounded_escaped_and_always_the_same() {
        let graph_of_many = star(100_000);
        let svg = graph(&graph_of_many);
        assert_eq!(svg.matches("<circle").count(), MAX_NODES);
        assert!(!svg.contains("<b>"));
        let mut turned = graph_of_many.clone();
        turned.edges.reverse();
        assert_eq!(places(&turned), places(&graph_of_many));
    }

    #[test]
    fn chosen_node_is_in_the_middle() {
        let mut graph = star(5);
        graph.centre = Some("n000003".to_owned());
        assert_eq!(places(&graph)["n000003"], (SIZE / 2.0, SIZE / 2.0));
        assert!(places(&Graph::default()).is_empty());
    }
}
